-- By how much did the revenue of 15-31 January exceed that of 1-14 January?
program second_half(month date = '2023-01-01', last_early int = 14);

-- Revenue of both halves
step halves:
  select coalesce(sum(total_price) filter (where day(sale_date) <= $last_early), 0) as early,
    coalesce(sum(total_price) filter (where day(sale_date) > $last_early), 0) as late
  from sales
  where date_trunc('month', sale_date) = $month;

return $halves.late - $halves.early as difference;
answer 'The second half brought {$halves.late - $halves.early} more.';
