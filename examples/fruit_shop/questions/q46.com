-- What was the average price per kg over all fruit sold (2 decimals)?
program average_price;

-- Revenue and weight of all that was sold
step sold: select sum(item_total_price) as revenue, sum(quantity_sold) as kg from sale_items;

return round($sold.revenue / $sold.kg, 2) as price;
answer 'A kg sold at {round($sold.revenue / $sold.kg, 2)} on average.';
