// After rows were put into the index: takes the mark off the memories that are still in the revision that was indexed. One that
// is gone leaves a row to remove. One that has changed stays marked; if another process may have put its row before ours,
// it gets a new revision, which no mark that is cleared late can be meant for.
// params: $tenant, $rows [[id, revision]], $renewed (a new revision; null: no other process moves rows), $ours (revisions that we put ourselves, behind these)
// returns: rows of type, properties (of those that have changed)
UNWIND $rows AS row
OPTIONAL MATCH (m:Memory {tenant: $tenant, id: row[0]})
SET m.tenant = $tenant
WITH m, row, coalesce(m.revision <> row[1], false) AS changed
FOREACH (_ IN CASE WHEN m.revision = row[1] THEN [1] ELSE [] END | REMOVE m.to_index)
FOREACH (_ IN CASE WHEN changed THEN [1] ELSE [] END | SET m.to_index = true,
  m.revision = CASE WHEN m.revision IN $ours THEN m.revision ELSE coalesce($renewed, m.revision) END)
FOREACH (_ IN CASE WHEN m IS NULL THEN [1] ELSE [] END |
  MERGE (r:Removal {tenant: $tenant, collection: 'graphembeddings', key: row[0]}) SET r.noted = randomUUID())
WITH m, changed WHERE changed
RETURN collect({type: [l IN labels(m) WHERE l <> 'Memory'][0], properties: m {.*, ingestion_time: toString(m.ingestion_time), update_time: toString(m.update_time)}}) AS rows
