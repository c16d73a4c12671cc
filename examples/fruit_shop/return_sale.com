-- A customer brings back everything bought on a day: that sale is undone.
program return_sale(phone text, sale_date date);

-- What this customer bought on this day
step found:
  select s.sale_id, c.customer_name
  from sales as s join customers as c using (customer_id)
  where c.phone_number = $phone and s.sale_date = $sale_date;

-- How many sales that is: just one can be undone
step times: select count(*) as n from $found;
assert $times.n > 0 else 'Nobody with phone {$phone} has a sale on {$sale_date}.';
assert $times.n = 1
  else 'Phone {$phone} has {$times.n} sales on {$sale_date}: unclear which is brought back.';

-- The sale
step sale -> one: select sale_id, customer_name from $found;

-- What was sold
step items:
  select i.fruit_id, f.fruit_name, i.quantity_sold
  from sale_items as i join fruits as f using (fruit_id)
  where i.sale_id = $sale.sale_id
  order by f.fruit_name;

-- Put every fruit back on the shelf
for each item in $items {
  step restock -> one:
    update fruits set stock_quantity = stock_quantity + $item.quantity_sold
    where fruit_id = $item.fruit_id;
}

-- Forget the items
step drop_items: delete from sale_items where sale_id = $sale.sale_id;

-- Forget the sale
step drop_sale -> one: delete from sales where sale_id = $sale.sale_id;

answer 'Sale {$sale.sale_id} of {$sale.customer_name} was undone; back in stock: {$items.fruit_name}.';
