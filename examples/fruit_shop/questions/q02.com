-- How many different kinds of fruit does the shop carry?
program kinds_of_fruit;

-- Every kind it knows
step kinds: select count(*) as n from fruits;

return $kinds;
answer 'The shop carries {$kinds.n} kinds of fruit.';
