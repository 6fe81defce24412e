// How many memories and edges there are, and how the memories' pointers disagree with the lessons. Of a pointer or a
// relationship that is there twice, the second has no other side.
// params: $tenant
// returns: nodes, edges, dangling_pointers, one_sided_links
MATCH (m:Memory {tenant: $tenant}) WHERE m.id IS NOT NULL
// Somebody may have made it by hand, without a list or with something else in its place.
WITH m, CASE WHEN m.reasoning_pointer_ids IS :: LIST<INTEGER NOT NULL> NOT NULL THEN m.reasoning_pointer_ids ELSE [] END AS pointers
CALL (m, pointers) {
  WITH m, pointers WHERE size(pointers) > 0 OR EXISTS { (m)<-[:LEARNED_FROM]-() }
  WITH m, pointers, COLLECT { MATCH (m)<-[:LEARNED_FROM]-(l:Lesson) RETURN l.rb_id } AS linked
  WITH m, pointers, linked, size(pointers) - COUNT { UNWIND pointers AS x RETURN DISTINCT x }
    + size(linked) - COUNT { UNWIND linked AS x RETURN DISTINCT x } AS twice
  UNWIND pointers + [x IN linked WHERE NOT x IN pointers] AS rb_id
  OPTIONAL MATCH (l:Lesson {tenant: $tenant, rb_id: rb_id})
  WITH m, pointers, linked, twice, rb_id, l, CASE WHEN l.link_nodes IS :: LIST<STRING NOT NULL> NOT NULL THEN l.link_nodes ELSE [] END AS links
  RETURN sum(CASE WHEN l IS NULL THEN 1 ELSE 0 END) AS dangling,
    sum(CASE WHEN l IS NOT NULL AND NOT (rb_id IN pointers AND rb_id IN linked AND m.id IN links) THEN 1 ELSE 0 END)
    + coalesce(max(twice), 0) AS one_sided
}
RETURN count(m) AS nodes, sum(COUNT { (m)-[:RELATES]->() }) AS edges, sum(dangling) AS dangling_pointers,
  sum(one_sided) AS one_sided_links
