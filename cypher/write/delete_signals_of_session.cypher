// Deletes what a session said of lessons, all of which are locked.
// params: $tenant, $session
// returns: rows of rb_id (what it was said of)
MATCH (said:Signal {tenant: $tenant, session: $session})
CALL (said) {
  MATCH (said)-[:ABOUT]->(l:Lesson)
  RETURN collect(l.rb_id) AS about
}
DETACH DELETE said
WITH about UNWIND about AS rb_id
RETURN collect({rb_id: rb_id}) AS rows
