// Memories by their ids.
// params: $tenant, $ids
// returns: rows of type, properties
UNWIND $ids AS id
MATCH (m:Memory {tenant: $tenant, id: id})
RETURN collect({type: [l IN labels(m) WHERE l <> 'Memory'][0], properties: m {.*, ingestion_time: toString(m.ingestion_time), update_time: toString(m.update_time)}}) AS rows
