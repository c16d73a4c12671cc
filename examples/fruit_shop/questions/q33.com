-- Which days (all, in order) had the lowest non-zero revenue?
program worst_days;

-- Revenue of each day with sales
step days:
  select sale_date, sum(total_price) as revenue
  from sales
  group by sale_date
  having sum(total_price) > 0;

-- The lowest
step worst:
  select sale_date, revenue
  from $days
  where revenue = (select min(revenue) from $days)
  order by sale_date;

return $worst;
answer 'The lowest revenue was on {$worst.sale_date}.';
