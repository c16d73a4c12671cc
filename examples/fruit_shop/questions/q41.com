-- What is the value of the remaining stock at current selling prices?
program stock_value;

-- All that is on the shelf
step shelf: select coalesce(sum(stock_quantity * selling_price), 0) as total from fruits;

return $shelf;
answer 'The stock is worth {$shelf.total}.';
