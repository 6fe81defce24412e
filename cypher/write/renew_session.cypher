// Says that a worker is still at a session that it has taken.
// params: $tenant, $id, $token, $lease (seconds)
// returns: id; no row: it is the worker's no longer
MATCH (s:Session {tenant: $tenant, id: $id})
SET s.tenant = $tenant
WITH s WHERE s.token = $token
SET s.due_at = datetime.realtime() + duration({seconds: $lease})
RETURN s.id AS id
