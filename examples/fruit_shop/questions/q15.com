-- How many kg of apple did Bob Smith buy on 2023-01-02?
program bought_on(customer text = 'Bob Smith', fruit text = 'apple', day date = '2023-01-02');

-- All of it that the customer bought on the day
step bought:
  select coalesce(sum(i.quantity_sold), 0) as kg
  from sale_items as i
    join sales as s using (sale_id)
    join customers as c using (customer_id)
    join fruits as f using (fruit_id)
  where c.customer_name = $customer and f.fruit_name = $fruit and s.sale_date = $day;

return $bought;
answer '{$customer} bought {$bought.kg} kg of {$fruit} on {$day}.';
