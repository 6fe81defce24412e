// Lessons that proved themselves in more namespaces than they are for, newest id first.
// params: $tenant, $min_confidence, $limit
// returns: rows of properties
MATCH (l:Lesson)
WHERE l.tenant = $tenant AND l.suggested_scope IS NOT NULL AND l.status = 'ACTIVE'
  AND coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence) >= $min_confidence
WITH l ORDER BY l.rb_id DESC LIMIT $limit
RETURN collect({properties: l {.*, created_at: toString(l.created_at), updated_at: toString(l.updated_at), last_used_at: toString(l.last_used_at),
  confidence: coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence)}}) AS rows
