-- Which customers (all, in alphabetical order) made the most valid transactions?
program most_transactions;

-- Sales of each customer
step counts:
  select c.customer_name, count(*) as n
  from sales as s join customers as c using (customer_id)
  group by c.customer_id;

-- Those with the most
step best:
  select customer_name, n
  from $counts
  where n = (select max(n) from $counts)
  order by customer_name;

return $best;
answer 'Most transactions: {$best.customer_name}.';
