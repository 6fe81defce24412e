// A page of lessons in the order of their ids, whole: for looking over the bank.
// params: $tenant, $after, $limit
// returns: rows of properties
MATCH (l:Lesson)
WHERE l.tenant = $tenant AND l.rb_id > $after
WITH l ORDER BY l.tenant, l.rb_id LIMIT $limit
RETURN collect({properties: l {.*, created_at: toString(l.created_at), updated_at: toString(l.updated_at), last_used_at: toString(l.last_used_at),
  confidence: coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence)}}) AS rows
