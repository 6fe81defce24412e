// Gives a session back to the queue, to be taken again after a pause; an attempt that is not to count is taken back. What it
// cost is counted also where the session is the worker's no longer, unless the worker has ended it.
// params: $tenant, $id, $token, $error, $tokens, $pause (seconds), $counts, $away (something else was away: how often in a row, and since when, is kept)
// returns: id; no row: it is the worker's no longer
MATCH (s:Session {tenant: $tenant, id: $id})
SET s.tenant = $tenant
WITH s WHERE coalesce(s.ended_by, '') <> $token
SET s.tokens_used = s.tokens_used + $tokens
WITH s WHERE s.token = $token
SET s.state = 'QUEUED', s.error = $error, s.token = null,
  s.attempts = CASE WHEN $counts THEN s.attempts ELSE s.attempts - 1 END,
  s.aways = CASE WHEN $away THEN coalesce(s.aways, 0) + 1 WHEN $counts THEN null ELSE s.aways END,
  s.away_since = CASE WHEN $away THEN coalesce(s.away_since, datetime.realtime()) WHEN $counts THEN null ELSE s.away_since END,
  s.due_at = datetime.realtime() + duration({milliseconds: toInteger($pause * 1000)}), s.updated_at = datetime.realtime()
RETURN s.id AS id
