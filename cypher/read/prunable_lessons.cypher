// Of a page of lessons in the order of their ids: the active ones below a confidence that nobody has brought back by hand.
// params: $tenant, $after, $below, $limit
// returns: ids, last (the page's last id; null: there are no more lessons), many (lessons on the page)
MATCH (l:Lesson)
WHERE l.tenant = $tenant AND l.rb_id > $after
WITH l ORDER BY l.tenant, l.rb_id LIMIT $limit
RETURN max(l.rb_id) AS last, count(l) AS many, collect(CASE WHEN l.status = 'ACTIVE' AND l.reinstated IS NULL
  AND coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence) < $below
  THEN l.rb_id END) AS ids
