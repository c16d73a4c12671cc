-- What was the total weight of fruit purchased from suppliers?
program weight_purchased;

-- Weight of all deliveries
step bought: select coalesce(sum(quantity_purchased), 0) as kg from purchase_items;

return $bought;
answer '{$bought.kg} kg of fruit were purchased.';
