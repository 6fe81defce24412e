// After rows were put into the index: takes the mark off the memories that are still in the revision that was indexed.
// One that has changed meanwhile is marked again, for this row may have replaced a newer one; one that is gone leaves a row to remove.
// params: $tenant, $rows [[id, revision]]
// returns: nothing
UNWIND $rows AS row
OPTIONAL MATCH (m:Memory {tenant: $tenant, id: row[0]})
SET m.tenant = $tenant
WITH m, row
FOREACH (_ IN CASE WHEN m.revision = row[1] THEN [1] ELSE [] END | REMOVE m.to_index)
FOREACH (_ IN CASE WHEN m.revision <> row[1] THEN [1] ELSE [] END | SET m.to_index = true)
FOREACH (_ IN CASE WHEN m IS NULL THEN [1] ELSE [] END |
  MERGE (:Removal {tenant: $tenant, collection: 'graphembeddings', key: row[0]}))
