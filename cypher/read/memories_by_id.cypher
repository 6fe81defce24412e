// Memories by their ids.
// params: $tenant, $ids
// returns: type, properties
UNWIND $ids AS id
MATCH (m:Memory {tenant: $tenant, id: id})
RETURN [l IN labels(m) WHERE l <> 'Memory'][0] AS type, properties(m) AS properties
