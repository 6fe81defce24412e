// All that was ever said of lessons, in lean lists, for computing their confidence.
// params: $tenant, $ids
// returns: rows of rb_id, start, recorded_at, signals [id, kind, created_time, source, namespace, fit, rb_id (the lesson that it was told of), work]
UNWIND $ids AS id
MATCH (l:Lesson {tenant: $tenant, rb_id: id})
CALL (l) {
  MATCH (s:Signal)-[:ABOUT]->(l)
  RETURN collect([s.id, s.kind, toString(s.created_time), s.source, s.namespace, s.fit, s.rb_id, s.work]) AS signals
}
RETURN collect({rb_id: l.rb_id, start: l.start_confidence, recorded_at: toString(l.created_at), signals: signals}) AS rows
