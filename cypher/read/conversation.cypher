// A conversation's memories, oldest first.
// params: $tenant, $conv_id, $limit
// returns: rows of type, properties
MATCH (m:Memory {tenant: $tenant, conv_id: $conv_id})
WITH m ORDER BY m.ingestion_time, m.id LIMIT $limit
RETURN collect({type: [l IN labels(m) WHERE l <> 'Memory'][0], properties: m {.*, ingestion_time: toString(m.ingestion_time), update_time: toString(m.update_time)}}) AS rows
