-- A customer buys several fruits at once.
program record_sale(
  customer text,
  phone text,
  email text = null,
  items many {fruit text, qty int},
  day date = $today
);

-- Quantities that make no sense
step odd: select fruit from $items where qty <= 0;
assert not exists $odd else 'The quantity of {$odd.fruit} must be above zero.';
assert exists $items else 'Nothing was bought.';

-- Each fruit once, however often it is listed
step wanted: select fruit, sum(qty) as qty from $items group by fruit;

-- What the shop does not carry, or has too little of
step lacking:
  select w.fruit, w.qty, coalesce(f.stock_quantity, 0) as stock
  from $wanted as w left join fruits as f on f.fruit_name = w.fruit
  where f.fruit_id is null or f.stock_quantity < w.qty;
assert not exists $lacking
  else 'Not enough in stock: {$lacking.fruit} (wanted {$lacking.qty} kg, left {$lacking.stock} kg).';

-- Each fruit at the price of today
step lines:
  select f.fruit_id, f.fruit_name, f.selling_price as price, w.qty, w.qty * f.selling_price as total
  from $wanted as w join fruits as f on f.fruit_name = w.fruit;

-- What has no price yet
step unpriced: select fruit_name from $lines where price is null;
assert not exists $unpriced else 'No price is set for {$unpriced.fruit_name}.';

-- Find the customer, or add them
step who:
  insert into customers (customer_name, phone_number, email)
  values ($customer, $phone, $email)
  on conflict (phone_number) do nothing returning customer_id;

-- The sale
step sale:
  insert into sales (customer_id, sale_date, total_price)
  values ($who.customer_id, $day, (select sum(total) from $lines))
  returning sale_id, total_price;

-- Its items
step sold:
  insert into sale_items (sale_id, fruit_id, quantity_sold, price_per_item, item_total_price)
  select $sale.sale_id, fruit_id, qty, price, total
  from $lines;

-- Off the shelf
for each line in $lines {
  step take -> one:
    update fruits set stock_quantity = stock_quantity - $line.qty
    where fruit_id = $line.fruit_id;
}

answer 'Sale {$sale.sale_id}: {$customer} pays {$sale.total_price}.';
