// Gives a session back to the queue, to be taken again after a pause; an attempt that is not to count is taken back.
// params: $tenant, $id, $token, $error, $tokens, $pause (seconds), $counts
// returns: id; no row: it is the worker's no longer
MATCH (s:Session {tenant: $tenant, id: $id})
SET s.tenant = $tenant
WITH s WHERE s.token = $token
SET s.state = 'QUEUED', s.error = $error, s.tokens_used = s.tokens_used + $tokens, s.token = null,
  s.attempts = CASE WHEN $counts THEN s.attempts ELSE s.attempts - 1 END,
  s.due_at = datetime.realtime() + duration({milliseconds: toInteger($pause * 1000)}), s.updated_at = datetime.realtime()
RETURN s.id AS id
