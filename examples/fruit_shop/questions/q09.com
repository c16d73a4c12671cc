-- How many customers have ever bought from the shop (including returned purchases)?
program customer_count;

-- A customer stays known when a sale is undone
step known: select count(*) as n from customers;

return $known;
answer '{$known.n} customers have bought from the shop.';
