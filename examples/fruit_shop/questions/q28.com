-- What was the total weight of fruit sold in January 2023?
program weight_sold(month date = '2023-01-01');

-- Weight of all fruit sold in the month
step sold:
  select coalesce(sum(i.quantity_sold), 0) as kg
  from sale_items as i join sales as s using (sale_id)
  where date_trunc('month', s.sale_date) = $month;

return $sold;
answer '{$sold.kg} kg of fruit were sold.';
