// After rows were removed from the vector store: a memory that has come back is marked, so that it is indexed again. One whose row was
// left, because its memory was back, and that is gone again by now, is still to be removed.
// params: $tenant, $keys (memory ids), $removed (those of them whose rows were removed)
// returns: nothing
UNWIND $keys AS key
OPTIONAL MATCH (m:Memory {tenant: $tenant, id: key})
SET m.to_index = true
WITH key, m WHERE m IS NOT NULL OR key IN $removed
MATCH (r:Removal {tenant: $tenant, collection: 'graphembeddings', key: key})
DELETE r
