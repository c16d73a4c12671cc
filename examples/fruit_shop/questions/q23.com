-- How much did that best customer spend in total?
program most_spent;

-- What each customer spent
step spent: select customer_id, sum(total_price) as total from sales group by customer_id;

-- The most
step most: select max(total) as total from $spent;

return $most;
answer 'The best customer spent {$most.total}.';
