-- How many purchases from suppliers were recorded in January 2023?
program purchase_count(month date = '2023-01-01');

-- Purchases of the month
step recorded:
  select count(*) as n
  from purchases
  where date_trunc('month', purchase_date) = $month;

return $recorded;
answer '{$recorded.n} purchases were recorded.';
