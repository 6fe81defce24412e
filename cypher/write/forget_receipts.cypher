// Removes receipts that are older than they are kept.
// params: $tenant, $before, $limit
// returns: nothing
MATCH (r:Receipt)
WHERE r.tenant = $tenant AND r.created_time < $before
WITH r LIMIT $limit
DETACH DELETE r
