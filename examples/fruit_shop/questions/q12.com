-- On which date was the last sale of January 2023 made?
program last_sale(month date = '2023-01-01');

-- The latest day with a sale
step latest: select max(sale_date) as day from sales where date_trunc('month', sale_date) = $month;

return $latest;
answer 'The last sale was on {$latest.day}.';
