-- Which fruits were sold on 2023-01-30 (alphabetical)?
program sold_on(day date = '2023-01-30');

-- Each fruit of the sales of the day once
step sold:
  select distinct f.fruit_name
  from sale_items as i join sales as s using (sale_id) join fruits as f using (fruit_id)
  where s.sale_date = $day
  order by f.fruit_name;

return $sold;
answer 'Sold on {$day}: {$sold.fruit_name}.';
