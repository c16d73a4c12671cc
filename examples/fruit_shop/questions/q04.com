-- What is the phone number of customer Sue Davis?
program customer_phone(customer text = 'Sue Davis');

-- Everybody of this name
step found:
  select phone_number
  from customers
  where customer_name = $customer
  order by phone_number;

return $found;
answer 'Phone of {$customer}: {$found.phone_number}.';
