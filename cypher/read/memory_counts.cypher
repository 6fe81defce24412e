// How many memories and edges there are, and how the memories' pointers disagree with the lessons. Of a pointer or a
// relationship that is there twice, the second has no other side.
// params: $tenant
// returns: nodes, edges, dangling_pointers, one_sided_links
MATCH (m:Memory {tenant: $tenant}) WHERE m.id IS NOT NULL
CALL (m) {
  WITH m WHERE size(m.reasoning_pointer_ids) > 0 OR EXISTS { (m)<-[:LEARNED_FROM]-() }
  WITH m, COLLECT { MATCH (m)<-[:LEARNED_FROM]-(l:Lesson) RETURN l.rb_id } AS linked
  WITH m, linked, size(m.reasoning_pointer_ids) - COUNT { UNWIND m.reasoning_pointer_ids AS x RETURN DISTINCT x }
    + size(linked) - COUNT { UNWIND linked AS x RETURN DISTINCT x } AS twice
  UNWIND m.reasoning_pointer_ids + [x IN linked WHERE NOT x IN m.reasoning_pointer_ids] AS rb_id
  OPTIONAL MATCH (l:Lesson {tenant: $tenant, rb_id: rb_id})
  RETURN sum(CASE WHEN l IS NULL THEN 1 ELSE 0 END) AS dangling,
    sum(CASE WHEN l IS NOT NULL AND NOT (rb_id IN m.reasoning_pointer_ids AND rb_id IN linked AND m.id IN l.link_nodes)
      THEN 1 ELSE 0 END) + coalesce(max(twice), 0) AS one_sided
}
RETURN count(m) AS nodes, sum(COUNT { (m)-[:RELATES]->() }) AS edges, sum(dangling) AS dangling_pointers,
  sum(one_sided) AS one_sided_links
