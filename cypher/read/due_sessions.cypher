// The sessions that a worker may take, those that wait longest first.
// params: $tenant, $limit
// returns: id
MATCH (s:Session {tenant: $tenant})
WHERE s.due_at <= datetime.realtime()
WITH s ORDER BY s.tenant, s.due_at LIMIT $limit
RETURN s.id AS id
