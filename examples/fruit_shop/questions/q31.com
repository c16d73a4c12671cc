-- What was the average daily revenue over days that had sales (2 decimals)?
program average_day;

-- Revenue of each day with sales
step days: select sale_date, sum(total_price) as revenue from sales group by sale_date;

-- Their average
step daily: select round(avg(revenue), 2) as average from $days;

return $daily;
answer 'A day with sales brought {$daily.average} on average.';
