// Finds or makes the memories of a write and locks them: what is read here is still so at the commit.
// Setting the tenant to what it is takes the lock and changes nothing; a lock by `SET m.x = m.x` would write back an old value.
// params: $tenant, $ids
// returns: rows of id, type (null: made just now), properties, removal (its old index row is still to be removed)
UNWIND $ids AS id
MERGE (m:Memory {tenant: $tenant, id: id})
SET m.tenant = $tenant
WITH m, m.version IS NULL AND EXISTS {
  MATCH (r:Removal {tenant: $tenant, collection: 'graphembeddings', key: m.id})
} AS removal
RETURN collect({id: m.id, type: [l IN labels(m) WHERE l <> 'Memory'][0], properties: m {.*, ingestion_time: toString(m.ingestion_time), update_time: toString(m.update_time)}, removal: removal}) AS rows
