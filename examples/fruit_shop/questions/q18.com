-- What was the average weight of fruit per sales transaction in January 2023?
program average_weight(month date = '2023-01-01');

-- Weight of all fruit sold
step weight:
  select sum(i.quantity_sold) as kg
  from sale_items as i join sales as s using (sale_id)
  where date_trunc('month', s.sale_date) = $month;

-- Number of sales
step sold: select count(*) as n from sales where date_trunc('month', sale_date) = $month;

return round($weight.kg / $sold.n, 2) as kg;
answer 'A sale weighed {round($weight.kg / $sold.n, 2)} kg on average.';
