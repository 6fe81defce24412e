// Who else uses what came of a session: edges to memories of others, lessons, other sessions that taught the same.
// params: $tenant, $id
// returns: memories [{id, others, lessons}] (others: an edge that somebody wrote leads out of the session), lessons [{rb_id, link_nodes, learned_by, taught_by}]
MATCH (s:Session {tenant: $tenant, id: $id})
CALL (s) {
  OPTIONAL MATCH (s)-[r:RECORDED]->(m:Memory)
  WITH s, m, r WHERE m IS NOT NULL
  ORDER BY r.place
  RETURN collect({id: m.id,
    others: EXISTS { MATCH (m)-[edge:RELATES]-(other:Memory) WHERE NOT coalesce(edge.machine_made, false) AND NOT (s)-[:RECORDED]->(other) },
    lessons: [(l:Lesson)-[:LEARNED_FROM]->(m) | l.rb_id]}) AS memories
}
CALL (s) {
  OPTIONAL MATCH (s)-[:TAUGHT]->(l:Lesson)
  WITH l WHERE l IS NOT NULL
  RETURN collect(l {.rb_id, .link_nodes, .learned_by, taught_by: COUNT { (l)<-[:TAUGHT]-(:Session) }}) AS lessons
}
RETURN memories, lessons
