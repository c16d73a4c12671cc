-- From which supplier did the shop buy the most kg?
program main_supplier;

-- Weight from each supplier
step weights:
  select s.supplier_name, sum(i.quantity_purchased) as kg
  from purchase_items as i
    join purchases as p using (purchase_id)
    join suppliers as s using (supplier_id)
  group by s.supplier_id;

-- The most
step most:
  select supplier_name, kg
  from $weights
  where kg = (select max(kg) from $weights)
  order by supplier_name;

return $most;
answer 'Most came from {$most.supplier_name}: {$most.kg} kg.';
