// Finds or makes the lessons of a write and locks them: what is read here is still so at the commit.
// params: $tenant, $ids
// returns: rows of rb_id, properties (without version: made just now), removal (its old index row is still to be removed)
UNWIND $ids AS id
MERGE (l:Lesson {tenant: $tenant, rb_id: id})
SET l.tenant = $tenant
WITH l, l.version IS NULL AND EXISTS {
  MATCH (r:Removal {tenant: $tenant, collection: 'reasoningbank', key: toString(l.rb_id)})
} AS removal
RETURN collect({rb_id: l.rb_id, properties: l {.*, created_at: toString(l.created_at), updated_at: toString(l.updated_at), last_used_at: toString(l.last_used_at),
  confidence: coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence)}, removal: removal}) AS rows
