-- Which customer bought the greatest weight of fruit?
program heaviest_buyer;

-- Weight that each customer bought
step weights:
  select c.customer_name, sum(i.quantity_sold) as kg
  from sale_items as i join sales as s using (sale_id) join customers as c using (customer_id)
  group by c.customer_id;

-- The greatest
step most:
  select customer_name, kg
  from $weights
  where kg = (select max(kg) from $weights)
  order by customer_name;

return $most;
answer 'The greatest weight was bought by {$most.customer_name}: {$most.kg} kg.';
