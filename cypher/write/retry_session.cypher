// Puts a session that ended without a lesson back into the queue, with its attempts counted anew.
// params: $tenant, $id
// returns: state (what it was), retried; no row: there is no such session
MATCH (s:Session {tenant: $tenant, id: $id})
SET s.tenant = $tenant
WITH s, s.state AS state, s.state IN ['FAILED', 'NOTHING_LEARNED'] AS retried
CALL (s, retried) {
  WITH s, retried WHERE retried
  SET s.state = 'QUEUED', s.attempts = 0, s.error = null, s.reason = null, s.aways = null, s.away_since = null, s.due_at = datetime.realtime(), s.updated_at = datetime.realtime()
}
RETURN state, retried
