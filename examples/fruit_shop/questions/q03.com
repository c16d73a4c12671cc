-- How many suppliers does the shop have?
program supplier_count;

-- All suppliers
step known: select count(*) as n from suppliers;

return $known;
answer 'The shop has {$known.n} suppliers.';
