// A conversation's memories, oldest first.
// params: $tenant, $conv_id, $limit
// returns: type, properties
MATCH (m:Memory {tenant: $tenant, conv_id: $conv_id})
WITH m ORDER BY m.ingestion_time, m.id LIMIT $limit
RETURN [l IN labels(m) WHERE l <> 'Memory'][0] AS type, properties(m) AS properties
