// Locks a session that a worker has taken.
// params: $tenant, $id, $token
// returns: attempts; no row: it is the worker's no longer
MATCH (s:Session {tenant: $tenant, id: $id})
SET s.tenant = $tenant
WITH s WHERE s.token = $token
RETURN s.attempts AS attempts
