-- What was the average revenue per valid transaction (2 decimals)?
program average_sale;

-- A returned sale is no longer there
step sold: select round(avg(total_price), 2) as average from sales;

return $sold;
answer 'A sale brought {$sold.average} on average.';
