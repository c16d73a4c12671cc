-- Which fruit generated the highest revenue?
program best_fruit;

-- Revenue of each fruit
step revenues:
  select f.fruit_name, sum(i.item_total_price) as revenue
  from sale_items as i join fruits as f using (fruit_id)
  group by f.fruit_id;

-- The highest
step best:
  select fruit_name, revenue
  from $revenues
  where revenue = (select max(revenue) from $revenues)
  order by fruit_name;

return $best;
answer 'The highest revenue came from {$best.fruit_name}, {$best.revenue}.';
