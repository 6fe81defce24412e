// Joins lessons to the memories they were learnt from: the relationship and the pointer. Both are locked already;
// the lesson's own list, link_nodes, is written with the lesson.
// params: $tenant, $pairs [[rb_id, memory id]]
// returns: nothing
UNWIND $pairs AS pair
MATCH (l:Lesson {tenant: $tenant, rb_id: pair[0]})
USING INDEX SEEK l:Lesson(tenant, rb_id)
CALL (pair) { // a subquery, so that the two look-ups are not multiplied
  MATCH (m:Memory {tenant: $tenant, id: pair[1]})
  RETURN m
}
MERGE (l)-[:LEARNED_FROM]->(m)
SET m.reasoning_pointer_ids = [x IN m.reasoning_pointer_ids WHERE x <> l.rb_id] + l.rb_id
