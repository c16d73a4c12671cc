-- A supplier delivers fruit: it goes into stock, and may get a new price.
program record_delivery(
  supplier text,
  contact text = null,
  email text = null,
  fruit text,
  qty int,
  unit_cost decimal(10,2),
  sell decimal(10,2) = null,
  day date = $today
);

assert $qty > 0 else 'The quantity of {$fruit} must be above zero.';

-- Find the supplier, or add it
step from_whom:
  insert into suppliers (supplier_name, contact_number, email)
  values ($supplier, $contact, $email)
  on conflict (supplier_name) do nothing returning supplier_id;

-- Find the fruit, or add it
step what:
  insert into fruits (fruit_name, selling_price)
  values ($fruit, $sell)
  on conflict (fruit_name) do nothing returning fruit_id;

-- The delivery
step purchase:
  insert into purchases (supplier_id, purchase_date, total_cost)
  values ($from_whom.supplier_id, $day, $qty * $unit_cost)
  returning purchase_id;

-- What was delivered
step item:
  insert into purchase_items (
    purchase_id, fruit_id, quantity_purchased, cost_per_item, item_total_cost
  )
  values ($purchase.purchase_id, $what.fruit_id, $qty, $unit_cost, $qty * $unit_cost);

-- Onto the shelf, at the new price if there is one
step shelf -> one:
  update fruits
  set stock_quantity = stock_quantity + $qty, selling_price = coalesce($sell, selling_price)
  where fruit_id = $what.fruit_id
  returning stock_quantity;

answer '{$qty} kg of {$fruit} came from {$supplier}; {$shelf.stock_quantity} kg are now in stock.';
