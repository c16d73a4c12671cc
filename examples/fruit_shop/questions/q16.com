-- What was the total revenue for January 2023?
program total_revenue(month date = '2023-01-01');

-- Revenue of all sales of the month
step revenue:
  select coalesce(sum(total_price), 0) as total
  from sales
  where date_trunc('month', sale_date) = $month;

return $revenue;
answer 'The total revenue was {$revenue.total}.';
