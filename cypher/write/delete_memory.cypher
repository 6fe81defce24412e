// Deletes a memory with its edges; each lesson learnt from it keeps a record of the lost source and is indexed anew;
// its row in the vector store is noted for removal.
// params: $tenant, $id, $revision (of the lessons that change)
// returns: edges (how many it had), lessons (the properties of those learnt from it); no row: there is no such memory
MATCH (m:Memory {tenant: $tenant, id: $id})
SET m.tenant = $tenant
WITH m WHERE m.id IS NOT NULL // not deleted while its lock was waited for
CALL (m) {
  MATCH (m)-[r:RELATES]-(:Memory)
  DELETE r
  RETURN count(r) AS edges
}
CALL (m) {
  MATCH (l:Lesson)-[link:LEARNED_FROM]->(m)
  SET l.tenant = $tenant
  WITH m, l, link
  SET l.link_nodes = [x IN l.link_nodes WHERE x <> m.id],
    l.lost_sources = [x IN coalesce(l.lost_sources, []) WHERE x <> m.id] + m.id,
    l.version = l.version + 1, l.revision = $revision, l.updated_at = datetime(), l.to_index = true
  DELETE link
  RETURN collect(l {.*, created_at: toString(l.created_at), updated_at: toString(l.updated_at), last_used_at: toString(l.last_used_at),
  confidence: coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence)}) AS lessons
}
MERGE (removal:Removal {tenant: $tenant, collection: 'graphembeddings', key: $id}) SET removal.noted = randomUUID()
DETACH DELETE m
RETURN edges, lessons
