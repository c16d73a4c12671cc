-- Which fruit sold the largest weight?
program most_sold;

-- Weight sold of each fruit
step weights:
  select f.fruit_name, sum(i.quantity_sold) as kg
  from sale_items as i join fruits as f using (fruit_id)
  group by f.fruit_id;

-- The largest
step most:
  select fruit_name, kg
  from $weights
  where kg = (select max(kg) from $weights)
  order by fruit_name;

return $most;
answer 'The largest weight was of {$most.fruit_name}, {$most.kg} kg.';
