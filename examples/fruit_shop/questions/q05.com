-- What is the email address of supplier ABC?
program supplier_email(supplier text = 'ABC');

-- The supplier
step found -> one: select email from suppliers where supplier_name = $supplier;

return $found;
answer 'Write to {$supplier} at {$found.email}.';
