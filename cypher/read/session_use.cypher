// What came of a session or was learnt from its memories, and who else has a part in it.
// params: $tenant, $id
// returns: memories [{id, others}] (others: an edge that somebody wrote leads out of the session), lessons [{rb_id, came, own, counted, by_hand, kept, behind}] (came: it taught or supported it, or what it became part of; own: its memories among the sources; counted: its support was added to the lesson; by_hand: recorded by a person; kept: a person recorded, changed, accepted, promoted or praised it, or a part of it; behind: another session stands behind it)
MATCH (s:Session {tenant: $tenant, id: $id})
CALL (s) {
  OPTIONAL MATCH (s)-[r:RECORDED]->(m:Memory)
  WITH s, m, r WHERE m IS NOT NULL
  ORDER BY r.place
  RETURN collect({id: m.id,
    others: EXISTS { MATCH (m)-[edge:RELATES]-(other:Memory) WHERE NOT coalesce(edge.machine_made, false) AND NOT (s)-[:RECORDED]->(other) }}) AS memories
}
CALL (s) {
  CALL (s) {
    MATCH (s)-[:RECORDED]->(:Memory)<-[:LEARNED_FROM]-(l:Lesson) RETURN l, 0 AS came
    UNION
    MATCH (s)-[:TAUGHT]->(:Lesson)-[:MERGED_INTO*0..]->(l:Lesson) RETURN l, 1 AS came
    UNION
    MATCH (said:Signal {tenant: $tenant, session: $id})-[:ABOUT]->(l:Lesson) RETURN l, 1 AS came
  }
  WITH s, l, max(came) AS came ORDER BY l.rb_id
  RETURN collect({rb_id: l.rb_id, came: came = 1,
    own: COLLECT { MATCH (s)-[:RECORDED]->(m:Memory)<-[:LEARNED_FROM]-(l) RETURN m.id },
    counted: EXISTS { MATCH (s)-[t:TAUGHT]->(l) WHERE t.counted },
    by_hand: coalesce(l.learned_by, 'hand') = 'hand' AND size(coalesce(l.merged_from, [])) = 0,
    kept: EXISTS { MATCH (l)<-[:MERGED_INTO*0..]-(part:Lesson)
      WHERE (coalesce(part.learned_by, 'hand') = 'hand' AND size(coalesce(part.merged_from, [])) = 0) OR part.kept_by_hand
        OR part.scope <> 'PROJECT' OR EXISTS { MATCH (part)<-[:ABOUT]-(said:Signal) WHERE said.kind = 'HELPFUL' } },
    behind: EXISTS { MATCH (l)<-[:MERGED_INTO*0..]-(:Lesson)<-[:TAUGHT]-(other:Session) WHERE other <> s }
      OR EXISTS { MATCH (l)-[:LEARNED_FROM]->(:Memory)<-[:RECORDED]-(other:Session) WHERE other <> s }}) AS lessons
}
RETURN memories, lessons
