-- Which fruit has the most stock left?
program most_stock;

-- The fruit, or fruits, with the most
step most:
  select fruit_name, stock_quantity
  from fruits
  where stock_quantity = (select max(stock_quantity) from fruits)
  order by fruit_name;

return $most;
answer 'Most is left of {$most.fruit_name}: {$most.stock_quantity} kg.';
