-- What does memory hold near the concepts of a question?
program recall(question text, window int = 15, hops int = 2, most int = 10, nodes int = 800);

-- The question's own concepts
step asked: call concepts($question);

-- Concepts within some hops, and not much older than where they were met from
step near:
  match any shortest (start:Concept)-[:RELATED*0..$hops]-(c:Concept)
  where start.name in $asked.name and c.t_index between start.t_index - $window and start.t_index
  return distinct c.name, c.t_index
  order by c.t_index desc, c.name limit $nodes;

-- The question's own before all, then the newest and strongest
step ranked:
  match (c:Concept)
  where c.name in $near.name
  optional match (c)-[r:RELATED]-(:Concept)
  return c.name,
    c.context,
    coalesce(sum(3 * r.t_index + r.strength), 0) as score,
    c.name in $asked.name as essential
  order by essential desc, score desc, c.name limit $most;

-- For a reader: the question's own concepts last, of the others the strongest nearest the end
step contexts: select name, context, score from $ranked order by essential, score, name;

-- The same as one text
step told: select string_agg(context, '' order by essential, score, name) as text from $ranked;

return $contexts;
answer '{$told.text}';
