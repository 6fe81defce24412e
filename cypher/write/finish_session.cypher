// Ends the work at a session, if it is still the worker's: it leaves the queue, with what came of it, and nobody's token
// fits any more.
// params: $tenant, $id, $token, $state, $error, $reason, $tokens, $learned_by, $lessons [[rb_id, supporting, counted]]
// returns: id; no row: it is the worker's no longer
MATCH (s:Session {tenant: $tenant, id: $id})
SET s.tenant = $tenant // takes the lock
WITH s WHERE s.token = $token
SET s.state = $state, s.error = $error, s.reason = $reason, s.learned_by = $learned_by, s.tokens_used = s.tokens_used + $tokens,
  s.token = null, s.ended_by = $token, s.aways = null, s.away_since = null, s.due_at = null, s.updated_at = datetime.realtime()
WITH s
CALL (s) {
  UNWIND $lessons AS lesson
  MATCH (l:Lesson {tenant: $tenant, rb_id: lesson[0]})
  USING INDEX SEEK l:Lesson(tenant, rb_id)
  MERGE (s)-[t:TAUGHT]->(l)
  SET t.supporting = lesson[1], t.counted = lesson[2]
}
RETURN s.id AS id
