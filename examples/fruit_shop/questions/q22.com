-- Which customer spent the most money in total?
program best_customer;

-- What each customer spent
step spent:
  select c.customer_name, sum(s.total_price) as total
  from sales as s join customers as c using (customer_id)
  group by c.customer_id;

-- Who spent the most
step best:
  select customer_name, total
  from $spent
  where total = (select max(total) from $spent)
  order by customer_name;

return $best;
answer 'The best customer was {$best.customer_name}, with {$best.total}.';
