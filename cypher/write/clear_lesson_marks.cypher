// After rows were put into the index: takes the mark off the lessons that are still in the revision that was indexed; from
// now on they may be offered.
// One that has changed meanwhile is marked again, for this row may have replaced a newer one; one that is gone leaves a row to remove.
// params: $tenant, $rows [[rb_id, revision]]
// returns: nothing
UNWIND $rows AS row
OPTIONAL MATCH (l:Lesson {tenant: $tenant, rb_id: row[0]})
SET l.tenant = $tenant
WITH l, row
FOREACH (_ IN CASE WHEN l.revision = row[1] THEN [1] ELSE [] END | REMOVE l.to_index, l.hidden_until_indexed)
FOREACH (_ IN CASE WHEN l.revision <> row[1] THEN [1] ELSE [] END | SET l.to_index = true)
FOREACH (_ IN CASE WHEN l IS NULL THEN [1] ELSE [] END |
  MERGE (:Removal {tenant: $tenant, collection: 'reasoningbank', key: toString(row[0])}))
