-- How many kg of grape were sold, not counting returned sales?
program fruit_sold(fruit text = 'grape');

-- A returned sale is no longer there
step sold:
  select coalesce(sum(i.quantity_sold), 0) as kg
  from sale_items as i join fruits as f using (fruit_id)
  where f.fruit_name = $fruit;

return $sold;
answer '{$sold.kg} kg of {$fruit} were sold.';
