-- What was the largest single valid transaction amount?
program largest_sale;

-- A returned sale is no longer there
step largest: select max(total_price) as amount from sales;

return $largest;
answer 'The largest sale was of {$largest.amount}.';
