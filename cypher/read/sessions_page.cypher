// A page of sessions in some states, newest id first; the cursor is the last one's id.
// params: $tenant, $states, $before, $limit
// returns: rows of properties, memories, lessons
UNWIND $states AS state
CALL (state) {
  MATCH (s:Session)
  WHERE s.tenant = $tenant AND s.state = state AND s.id < coalesce($before, 'X')
  WITH s ORDER BY s.tenant DESC, s.state DESC, s.id DESC LIMIT $limit
  RETURN s
}
WITH s ORDER BY s.id DESC LIMIT $limit
// Its state first: a session that is done has its lessons, also where it is done while it is read.
WITH s, s {.*, created_at: toString(s.created_at), updated_at: toString(s.updated_at), due_at: toString(s.due_at)} AS properties
CALL (s) {
  OPTIONAL MATCH (s)-[r:RECORDED]->(m:Memory)
  WITH m, r ORDER BY r.place
  RETURN collect(m.id) AS memories
}
CALL (s) {
  OPTIONAL MATCH (s)-[:TAUGHT]->(l:Lesson)
  WITH l ORDER BY l.rb_id
  RETURN collect(l.rb_id) AS lessons
}
WITH properties, memories, lessons ORDER BY properties.id DESC
RETURN collect({properties: properties, memories: memories, lessons: lessons}) AS rows
