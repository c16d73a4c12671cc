-- Which fruit had the highest margin per kg between its average selling price and average purchase cost?
program best_margin;

-- Average price of each fruit, over its sales
step sold: select fruit_id, avg(price_per_item) as price from sale_items group by fruit_id;

-- Average cost of each fruit, over its deliveries
step bought: select fruit_id, avg(cost_per_item) as cost from purchase_items group by fruit_id;

-- Its margin
step margins:
  select f.fruit_name, s.price - b.cost as margin
  from $sold as s join $bought as b using (fruit_id) join fruits as f using (fruit_id);

-- The highest
step best:
  select fruit_name, round(margin, 2) as margin
  from $margins
  where margin = (select max(margin) from $margins)
  order by fruit_name;

return $best;
answer 'The highest margin is that of {$best.fruit_name}: {$best.margin} a kg.';
