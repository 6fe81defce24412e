// What ranks lessons that a search has hit, without their texts; a hit in another revision, or of no lesson, is not true.
// params: $tenant, $ids
// returns: rows of rb_id, revision, status, namespace, scope, outcome, link_nodes (the first ten), created_at, updated_at, last_used_at, confidence, usage_count, offered_count
UNWIND $ids AS id
MATCH (l:Lesson {tenant: $tenant, rb_id: id})
RETURN collect(l {.rb_id, .revision, .status, .namespace, .scope, .outcome, .usage_count, offered_count: coalesce(l.offered_count, 0), link_nodes: l.link_nodes[..10],
  created_at: toString(l.created_at), updated_at: toString(l.updated_at), last_used_at: toString(l.last_used_at),
  confidence: coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence)}) AS rows
