-- Who made the largest single valid transaction?
program largest_buyer;

-- The amount
step largest: select max(total_price) as amount from sales;

-- Whoever paid it
step buyers:
  select distinct c.customer_name
  from sales as s join customers as c using (customer_id)
  where s.total_price = $largest.amount
  order by c.customer_name;

return $buyers;
answer 'The largest sale, of {$largest.amount}, was to {$buyers.customer_name}.';
