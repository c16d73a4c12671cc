-- The shop changes the price of a fruit.
program change_price(fruit text, price decimal(10,2));

assert $price > 0 else 'A price must be above zero.';

-- The price until now
step before: select selling_price from fruits where fruit_name = $fruit;
assert exists $before else 'The shop has no {$fruit}.';

-- The new price
step changed -> one: update fruits set selling_price = $price where fruit_name = $fruit;

answer '{$fruit} now sells at {$price} a kg; before, at {$before.selling_price}.';
