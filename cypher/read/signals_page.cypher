// A page of the signals about each of several lessons, newest first; the cursor is the last one's time and id.
// params: $tenant, $ids, $before_time, $before_id, $limit
// returns: rows of rb_id, signals
UNWIND $ids AS id
MATCH (l:Lesson {tenant: $tenant, rb_id: id})
CALL (l) {
  MATCH (s:Signal)-[:ABOUT]->(l)
  WHERE $before_time IS NULL OR s.created_time < $before_time OR (s.created_time = $before_time AND s.id < $before_id)
  WITH s ORDER BY s.created_time DESC, s.id DESC LIMIT $limit
  RETURN collect(s {.*, created_time: toString(s.created_time)}) AS signals
}
RETURN collect({rb_id: l.rb_id, signals: signals}) AS rows
