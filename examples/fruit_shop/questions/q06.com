-- How many kg of cherry were purchased on 2023-01-01?
program purchased_on(fruit text = 'cherry', day date = '2023-01-01');

-- All deliveries of it on the day
step bought:
  select coalesce(sum(i.quantity_purchased), 0) as kg
  from purchase_items as i join purchases as p using (purchase_id) join fruits as f using (fruit_id)
  where f.fruit_name = $fruit and p.purchase_date = $day;

return $bought;
answer '{$bought.kg} kg of {$fruit} were purchased on {$day}.';
