-- How much was paid to supplier ABC in total?
program paid_to(supplier text = 'ABC');

-- Cost of all its deliveries
step paid:
  select coalesce(sum(p.total_cost), 0) as total
  from purchases as p join suppliers as s using (supplier_id)
  where s.supplier_name = $supplier;

return $paid;
answer '{$supplier} was paid {$paid.total}.';
