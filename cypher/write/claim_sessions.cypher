// Takes sessions: whoever comes at the same moment waits for the lock and then finds that they are taken. A session that
// was taken too often by workers that died is given up.
// params: $tenant, $ids, $token, $lease (seconds), $most (attempts), $given_up (the reason)
// returns: id, attempts, aways (how often in a row something else was away), away_seconds (since the first of them)
UNWIND $ids AS id
MATCH (s:Session {tenant: $tenant, id: id})
SET s.tenant = $tenant
WITH s WHERE s.due_at <= datetime.realtime()
SET s.state = CASE WHEN s.attempts < $most THEN 'RUNNING' ELSE 'FAILED' END,
  s.error = CASE WHEN s.attempts < $most THEN s.error ELSE $given_up END,
  s.token = CASE WHEN s.attempts < $most THEN $token END,
  s.due_at = CASE WHEN s.attempts < $most THEN datetime.realtime() + duration({seconds: $lease}) END,
  s.updated_at = datetime.realtime()
WITH s WHERE s.state = 'RUNNING'
SET s.attempts = s.attempts + 1
RETURN s.id AS id, s.attempts AS attempts, coalesce(s.aways, 0) AS aways,
  coalesce(datetime.realtime().epochSeconds - s.away_since.epochSeconds, 0) AS away_seconds
