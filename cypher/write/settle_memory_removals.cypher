// After rows were removed from the vector store: their notes are dropped, unless they were noted anew meanwhile. A memory that came
// back while its row was removed may have lost its new one: it is marked, and gets a new revision if another process may have
// put that one. One that was back before kept its row, and needs nothing; if it is gone by now, its note stays.
// params: $tenant, $rows [{key (memory ids), noted, back}], $renewed (a new revision; null: no other process moves rows)
// returns: rows of type, properties (of those that came back meanwhile)
UNWIND $rows AS row
OPTIONAL MATCH (m:Memory {tenant: $tenant, id: row.key})
SET m.tenant = $tenant
WITH row, m, m IS NOT NULL AND NOT row.back AS lost
FOREACH (_ IN CASE WHEN lost THEN [1] ELSE [] END | SET m.to_index = true, m.revision = coalesce($renewed, m.revision))
WITH row, m, lost
OPTIONAL MATCH (r:Removal {tenant: $tenant, collection: 'graphembeddings', key: row.key})
WHERE coalesce(r.noted, '') = coalesce(row.noted, '') AND (m IS NOT NULL OR NOT row.back)
DELETE r
WITH m, lost WHERE lost AND m.id IS NOT NULL // not deleted while its lock was waited for
RETURN collect({type: [l IN labels(m) WHERE l <> 'Memory'][0], properties: m {.*, ingestion_time: toString(m.ingestion_time), update_time: toString(m.update_time)}}) AS rows
