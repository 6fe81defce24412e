// Rows of the vector store that are still to be removed there.
// params: $tenant, $collection, $limit
// returns: rows of key
MATCH (r:Removal {tenant: $tenant, collection: $collection}) WHERE r.key IS NOT NULL
WITH r LIMIT $limit
RETURN collect({key: r.key}) AS rows
