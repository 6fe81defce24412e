// Makes the memories of a write that are new, and locks those that are there: what is read here is still so at the commit.
// Setting the tenant to what it is takes the lock and changes nothing; a lock by `SET m.x = m.x` would write back an old value.
// params: $tenant, $rows [{id, type, properties}], $now, $revision (of this write alone, so it tells what it has made)
// returns: rows of id, type and properties (both null: made just now), removal (its old index row is still to be removed)
UNWIND $rows AS row
MERGE (m:Memory {tenant: $tenant, id: row.id})
ON CREATE SET m:$(row.type), m.ingestion_time = $now, m.update_time = $now, m.revision = $revision, m.to_index = true, m += row.properties
ON MATCH SET m.tenant = $tenant
WITH m, coalesce(m.revision = $revision, false) AS made
RETURN collect(CASE WHEN made
  THEN {id: m.id, removal: EXISTS { MATCH (r:Removal {tenant: $tenant, collection: 'graphembeddings', key: m.id}) }}
  ELSE {id: m.id, type: [l IN labels(m) WHERE l <> 'Memory'][0], removal: false, properties: m {.*, ingestion_time: toString(m.ingestion_time), update_time: toString(m.update_time)}}
END) AS rows
