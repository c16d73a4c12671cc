-- How many kg of apple are in stock at the end of January 2023?
program in_stock(fruit text = 'apple');

-- What is on the shelf after all that was recorded
step shelf -> one: select stock_quantity from fruits where fruit_name = $fruit;

return $shelf;
answer '{$shelf.stock_quantity} kg of {$fruit} are in stock.';
