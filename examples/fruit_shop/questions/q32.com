-- On how many days were there valid sales?
program days_with_sales;

-- Each day once
step days: select count(distinct sale_date) as n from sales;

return $days;
answer 'There were sales on {$days.n} days.';
