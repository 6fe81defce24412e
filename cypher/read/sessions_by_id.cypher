// Sessions by their ids, with the ids of their memories in the order of the work, and of the lessons that came of them.
// params: $tenant, $ids
// returns: rows of properties, memories, lessons
UNWIND $ids AS id
MATCH (s:Session {tenant: $tenant, id: id})
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
RETURN collect({properties: properties, memories: memories, lessons: lessons}) AS rows
