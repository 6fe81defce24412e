// How many lessons there are, and how their link nodes disagree with the memories. A link that the memory or the
// relationship knows too is counted from the memory's side. Of a link that is there twice, the second has no other side.
// params: $tenant
// returns: lessons, dangling_links, one_sided_links
MATCH (l:Lesson {tenant: $tenant}) WHERE l.rb_id IS NOT NULL
CALL (l) {
  UNWIND l.link_nodes AS id
  OPTIONAL MATCH (m:Memory {tenant: $tenant, id: id})
  WITH l, m, id, CASE WHEN m.reasoning_pointer_ids IS :: LIST<INTEGER NOT NULL> NOT NULL THEN m.reasoning_pointer_ids ELSE [] END AS pointers
  RETURN sum(CASE WHEN m IS NULL THEN 1 ELSE 0 END) AS dangling,
    sum(CASE WHEN m IS NOT NULL AND NOT l.rb_id IN pointers AND NOT EXISTS { (l)-[:LEARNED_FROM]->(m) }
      THEN 1 ELSE 0 END) + count(id) - count(DISTINCT id) AS one_sided
}
RETURN count(l) AS lessons, sum(dangling) AS dangling_links, sum(one_sided) AS one_sided_links
