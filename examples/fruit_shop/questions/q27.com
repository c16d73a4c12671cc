-- How much revenue did apple generate?
program fruit_revenue(fruit text = 'apple');

-- Revenue of all sales of it
step revenue:
  select coalesce(sum(i.item_total_price), 0) as total
  from sale_items as i join fruits as f using (fruit_id)
  where f.fruit_name = $fruit;

return $revenue;
answer 'The revenue of {$fruit} was {$revenue.total}.';
