// After rows were removed from the vector store: a memory that has come back meanwhile is marked, so that it is indexed again.
// params: $tenant, $keys (memory ids)
// returns: nothing
UNWIND $keys AS key
OPTIONAL MATCH (m:Memory {tenant: $tenant, id: key})
SET m.to_index = true
WITH key
MATCH (r:Removal {tenant: $tenant, collection: 'graphembeddings', key: key})
DELETE r
