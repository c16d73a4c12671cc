-- At what unit cost was cherry bought on 2023-01-01?
program unit_cost(fruit text = 'cherry', day date = '2023-01-01');

-- The cost, or costs, on the day
step costs:
  select distinct i.cost_per_item
  from purchase_items as i join purchases as p using (purchase_id) join fruits as f using (fruit_id)
  where f.fruit_name = $fruit and p.purchase_date = $day
  order by i.cost_per_item;

return $costs;
answer 'A kg of {$fruit} was bought at {$costs.cost_per_item} on {$day}.';
