// Deletes a lesson, every pointer to it and all that was said of it alone; its row in the vector store is noted for removal.
// params: $tenant, $rb_id
// returns: pointers (how many memories pointed at it); no row: there is no such lesson
MATCH (l:Lesson {tenant: $tenant, rb_id: $rb_id})
SET l.tenant = $tenant
WITH l
CALL (l) {
  MATCH (l)-[link:LEARNED_FROM]->(m:Memory)
  SET m.tenant = $tenant
  WITH l, m, link
  SET m.reasoning_pointer_ids = [x IN m.reasoning_pointer_ids WHERE x <> l.rb_id]
  DELETE link
  RETURN count(m) AS pointers
}
CALL (l) {
  MATCH (s:Signal)-[about:ABOUT]->(l)
  DELETE about
  WITH s WHERE NOT EXISTS { (s)-[:ABOUT]->(:Lesson) }
  DELETE s
}
CALL (l) { // what became part of it stays, and names it no longer
  MATCH (part:Lesson)-[:MERGED_INTO]->(l)
  WHERE part.merged_into = l.rb_id
  SET part.merged_into = null
}
MERGE (removal:Removal {tenant: $tenant, collection: 'reasoningbank', key: toString($rb_id)})
DETACH DELETE l
RETURN pointers
