-- How many distinct customers bought pear (valid sales only)?
program buyers_of(fruit text = 'pear');

-- Each customer once
step buyers:
  select count(distinct s.customer_id) as n
  from sales as s join sale_items as i using (sale_id) join fruits as f using (fruit_id)
  where f.fruit_name = $fruit;

return $buyers;
answer '{$buyers.n} customers bought {$fruit}.';
