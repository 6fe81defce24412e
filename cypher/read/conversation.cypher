// A conversation's memories, oldest first.
// params: $tenant, $conv_id, $limit
// returns: rows of type, properties
MATCH (m:Memory)
USING INDEX SEEK m:Memory(tenant, conv_id, ingestion_time, id)
WHERE m.tenant = $tenant AND m.conv_id = $conv_id AND m.ingestion_time IS NOT NULL AND m.id IS NOT NULL
WITH m ORDER BY m.tenant, m.conv_id, m.ingestion_time, m.id LIMIT $limit // as the index has them: nothing is sorted
RETURN collect({type: [l IN labels(m) WHERE l <> 'Memory'][0], properties: m {.*, ingestion_time: toString(m.ingestion_time), update_time: toString(m.update_time)}}) AS rows
