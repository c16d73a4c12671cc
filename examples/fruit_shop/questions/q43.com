-- How much did Sue Davis spend in January 2023?
program spent_in(customer text = 'Sue Davis', month date = '2023-01-01');

-- All the customer paid in the month
step paid:
  select coalesce(sum(s.total_price), 0) as total
  from sales as s join customers as c using (customer_id)
  where c.customer_name = $customer and date_trunc('month', s.sale_date) = $month;

return $paid;
answer '{$customer} spent {$paid.total}.';
