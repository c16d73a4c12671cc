-- Which fruit has the highest selling price at the end of the month?
program dearest_fruit;

-- The fruit, or fruits, at the highest price
step dearest:
  select fruit_name, selling_price
  from fruits
  where selling_price = (select max(selling_price) from fruits)
  order by fruit_name;

return $dearest;
answer 'The highest price is that of {$dearest.fruit_name}.';
