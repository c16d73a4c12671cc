-- What was the revenue of the first week (1-7 January)?
program revenue_between(first_day date = '2023-01-01', last_day date = '2023-01-07');

-- Revenue of all sales of these days
step revenue:
  select coalesce(sum(total_price), 0) as total
  from sales
  where sale_date between $first_day and $last_day;

return $revenue;
answer 'The revenue from {$first_day} to {$last_day} was {$revenue.total}.';
