-- Which supplier delivered the cherry on 2023-01-01?
program who_delivered(fruit text = 'cherry', day date = '2023-01-01');

-- All that delivered it on the day
step from_whom:
  select distinct s.supplier_name
  from suppliers as s
    join purchases as p using (supplier_id)
    join purchase_items as i using (purchase_id)
    join fruits as f using (fruit_id)
  where f.fruit_name = $fruit and p.purchase_date = $day
  order by s.supplier_name;

return $from_whom;
answer 'The {$fruit} of {$day} came from {$from_whom.supplier_name}.';
