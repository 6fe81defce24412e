// What ranks lessons that a search has hit, or that memories point at; a hit of another revision or version, or of no lesson, is not
// true. Of those that are likely to be shown the whole of it, so that nobody need ask twice; of the others no texts.
// params: $tenant, $ids, $shown (some of them), $memories (whose lessons are looked at, too, their first 20 as if to be shown), $pointers (how many of each memory, those linked last)
// returns: rows of [rb_id, revision, version, status, namespace, scope, outcome, link_nodes (the first ten), created_at, when it was used last or else changed (seconds since 1970), confidence, usage_count, offered_count, whether it is linked to other lessons, whether it is hidden until it is indexed, properties (null where they were not asked for)]
CALL () {
  UNWIND $memories AS id
  MATCH (m:Memory {tenant: $tenant, id: id})
  UNWIND m.reasoning_pointer_ids[-$pointers..] AS rb_id
  RETURN collect(DISTINCT rb_id) AS pointed
}
WITH $ids + pointed AS ids, $shown + pointed[..20] AS shown
UNWIND ids AS id
MATCH (lesson:Lesson {tenant: $tenant, rb_id: id})
USING INDEX SEEK lesson:Lesson(tenant, rb_id)
// All its properties at once: one by one, each is looked for from the first.
WITH lesson, shown, properties(lesson) AS l
WITH lesson, shown, l, coalesce(l.last_used_at, l.updated_at) AS moved
WITH [l.rb_id, l.revision, l.version, l.status, l.namespace, l.scope, l.outcome, coalesce(l.link_nodes, [])[..10],
  toString(l.created_at), moved.epochMillis / 1000.0,
  coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence),
  l.usage_count, coalesce(l.offered_count, 0),
  EXISTS { (lesson)-[:CAUSES|REQUIRES|CONFLICTS|ENHANCES|ALTERNATIVE]-() },
  coalesce(l.hidden_until_indexed, false),
  CASE WHEN l.rb_id IN shown THEN l {.*, created_at: toString(l.created_at), updated_at: toString(l.updated_at),
    last_used_at: toString(l.last_used_at),
    confidence: coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence)} END] AS row
WHERE row[3] IS NOT NULL AND (row[15] IS NULL OR row[15].rb_id IS NOT NULL) // not deleted while it was read
RETURN collect(row) AS rows
