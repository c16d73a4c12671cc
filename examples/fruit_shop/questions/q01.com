-- What is the current selling price of pear?
program current_price(fruit text = 'pear');

-- Its price today
step price -> one: select selling_price from fruits where fruit_name = $fruit;

return $price;
answer 'A kg of {$fruit} sells at {$price.selling_price}.';
