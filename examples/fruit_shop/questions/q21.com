-- How many valid (not returned) sales transactions were there?
program sale_count;

-- A returned sale is no longer there
step valid: select count(*) as n from sales;

return $valid;
answer 'There were {$valid.n} valid sales.';
