-- What share of total revenue came from the best-selling fruit by revenue (percent, 1 decimal)?
program best_share;

-- Revenue of each fruit
step by_fruit: select fruit_id, sum(item_total_price) as revenue from sale_items group by fruit_id;

-- The share of the best one
step share: select round(100 * max(revenue) / sum(revenue), 1) as percent from $by_fruit;

return $share;
answer '{$share.percent} % of the revenue came from the best fruit.';
