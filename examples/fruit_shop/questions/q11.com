-- What was the total price of Sue Davis's purchase on 2023-01-02?
program paid_on(customer text = 'Sue Davis', day date = '2023-01-02');

-- All the customer paid on the day
step paid:
  select coalesce(sum(s.total_price), 0) as total
  from sales as s join customers as c using (customer_id)
  where c.customer_name = $customer and s.sale_date = $day;

return $paid;
answer '{$customer} paid {$paid.total} on {$day}.';
