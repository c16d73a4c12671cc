-- Learn a text: its concepts, which stand beside which, and what was said.
program learn(text text);

-- One global time step for each update
step clock:
  insert into clock (id, t)
  values (1, 1)
  on conflict (id) do update set t = clock.t + 1 returning t;

-- The concepts of the text, in order
step found: call concepts($text);

-- Each concept once
step names: select distinct name from $found;

-- Remember each concept; one met again gets the text added, and counts a revision
step remember:
  unwind $names as n
  merge (c:Concept {name: n.name})
  on create set c.context = '. ' || $text, c.t_index = $clock.t, c.revision_count = 0
  on match set c.context = c.context || '. ' || $text,
    c.t_index = $clock.t,
    c.revision_count = c.revision_count + 1;

-- Each concept with the next one
step next_to: select name, lead(name) over (order by position) as next_name from $found;

-- Neighbouring pairs, the lesser name first
step pairs:
  select distinct least(name, next_name) as a, greatest(name, next_name) as b
  from $next_to
  where name <> next_name;

-- Tie each pair, or make its tie stronger
step relate:
  unwind $pairs as p
  match (a:Concept {name: p.a}), (b:Concept {name: p.b})
  merge (a)-[r:RELATED]->(b)
  on create set r.strength = 1, r.t_index = $clock.t
  on match set r.strength = r.strength + 1, r.t_index = $clock.t;

answer 'Learned {$names.name} at step {$clock.t}.';
