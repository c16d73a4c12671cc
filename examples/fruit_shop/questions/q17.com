-- Which day in January 2023 had the highest revenue?
program best_day(month date = '2023-01-01');

-- Revenue of each day
step days:
  select sale_date, sum(total_price) as revenue
  from sales
  where date_trunc('month', sale_date) = $month
  group by sale_date;

-- The day, or days, with the highest
step best:
  select sale_date, revenue
  from $days
  where revenue = (select max(revenue) from $days)
  order by sale_date;

return $best;
answer 'The best day was {$best.sale_date}, with {$best.revenue}.';
