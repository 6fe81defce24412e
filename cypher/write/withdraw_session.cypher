// Takes the memories of a session out of lessons that stay: the relationship, the pointer and the lesson's own list. Those that
// are deleted with it are lost sources from then on. All of them are locked.
// params: $tenant, $rows [{rb_id, nodes, lost, supporters (how many fewer)}], $revision (of the lessons that change)
// returns: rows of properties
UNWIND $rows AS row
MATCH (l:Lesson {tenant: $tenant, rb_id: row.rb_id})
SET l.link_nodes = [x IN l.link_nodes WHERE NOT x IN row.nodes],
  l.lost_sources = [x IN coalesce(l.lost_sources, []) WHERE NOT x IN row.lost] + row.lost,
  l.supporters = coalesce(l.supporters, 0) - row.supporters,
  l.version = l.version + 1, l.revision = $revision, l.updated_at = datetime(), l.to_index = true
WITH row, l
CALL (row, l) {
  MATCH (l)-[link:LEARNED_FROM]->(m:Memory)
  WHERE m.id IN row.nodes
  SET m.reasoning_pointer_ids = [x IN m.reasoning_pointer_ids WHERE x <> l.rb_id]
  DELETE link
}
RETURN collect({properties: l {.*, created_at: toString(l.created_at), updated_at: toString(l.updated_at), last_used_at: toString(l.last_used_at),
  confidence: coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence)}}) AS rows
