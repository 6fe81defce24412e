// Notes rows of the vector store that have no record and are to be removed there.
// params: $tenant, $collection, $keys
// returns: nothing
UNWIND $keys AS key
MERGE (r:Removal {tenant: $tenant, collection: $collection, key: key})
SET r.noted = randomUUID()
