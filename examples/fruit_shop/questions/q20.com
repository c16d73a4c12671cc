-- What was the gross profit (revenue minus purchase cost) for January 2023?
program gross_profit(month date = '2023-01-01');

-- Revenue of the month
step revenue:
  select coalesce(sum(total_price), 0) as total
  from sales
  where date_trunc('month', sale_date) = $month;

-- Cost of its purchases
step cost:
  select coalesce(sum(total_cost), 0) as total
  from purchases
  where date_trunc('month', purchase_date) = $month;

return $revenue.total - $cost.total as profit;
answer 'The gross profit was {$revenue.total - $cost.total}.';
