// Says that a worker is still at a session that it has taken, and what it waits for.
// params: $tenant, $id, $token, $lease (seconds), $error (null: nothing new)
// returns: id; no row: it is the worker's no longer
MATCH (s:Session {tenant: $tenant, id: $id})
SET s.tenant = $tenant
WITH s WHERE s.token = $token
SET s.due_at = datetime.realtime() + duration({seconds: $lease}), s.error = coalesce($error, s.error)
RETURN s.id AS id
