-- How many transactions contained at least three different fruits?
program big_baskets(fewest int = 3);

-- Different fruits of each sale
step baskets: select sale_id, count(distinct fruit_id) as n from sale_items group by sale_id;

-- Sales with enough of them
step big: select count(*) as n from $baskets where n >= $fewest;

return $big;
answer '{$big.n} transactions had {$fewest} different fruits or more.';
