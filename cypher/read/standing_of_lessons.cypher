// What ranks lessons that a search has hit, without their texts; a hit in another revision, or of no lesson, is not true.
// params: $tenant, $ids
// returns: rows of [rb_id, revision, status, namespace, scope, outcome, link_nodes (the first ten), created_at, when it was used last or else changed (seconds since 1970), confidence, usage_count, offered_count, whether it is linked to other lessons, whether it is hidden until it is indexed]
UNWIND $ids AS id
MATCH (l:Lesson {tenant: $tenant, rb_id: id})
WITH l, coalesce(l.last_used_at, l.updated_at) AS moved
RETURN collect([l.rb_id, l.revision, l.status, l.namespace, l.scope, l.outcome, l.link_nodes[..10],
  toString(l.created_at), moved.epochMillis / 1000.0,
  coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence),
  l.usage_count, coalesce(l.offered_count, 0),
  EXISTS { (l)-[:CAUSES|REQUIRES|CONFLICTS|ENHANCES|ALTERNATIVE]-() },
  coalesce(l.hidden_until_indexed, false)]) AS rows
