// Lessons by their ids.
// params: $tenant, $ids
// returns: rows of properties
UNWIND $ids AS id
MATCH (l:Lesson {tenant: $tenant, rb_id: id})
RETURN collect({properties: l {.*, created_at: toString(l.created_at), updated_at: toString(l.updated_at), last_used_at: toString(l.last_used_at),
  confidence: coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence)}}) AS rows
