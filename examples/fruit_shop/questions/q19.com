-- What was the total cost of all purchases in January 2023?
program total_cost(month date = '2023-01-01');

-- Cost of all purchases of the month
step cost:
  select coalesce(sum(total_cost), 0) as total
  from purchases
  where date_trunc('month', purchase_date) = $month;

return $cost;
answer 'The purchases cost {$cost.total}.';
