// Deletes lessons, every pointer to them and all that was said of them alone; their rows in the vector store are noted for removal.
// params: $tenant, $ids
// returns: rb_id, pointers (how many memories pointed at it), a row for each; no row: there is no such lesson
UNWIND $ids AS id
MATCH (l:Lesson {tenant: $tenant, rb_id: id})
SET l.tenant = $tenant
WITH id, l WHERE l.rb_id IS NOT NULL // not deleted while its lock was waited for
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
MERGE (removal:Removal {tenant: $tenant, collection: 'reasoningbank', key: toString(id)}) SET removal.noted = randomUUID()
DETACH DELETE l
RETURN id AS rb_id, pointers
