// Rows of the vector store that are still to be removed there, and whether their record has come back.
// params: $tenant, $collection, $limit
// returns: rows of key, noted, back
MATCH (r:Removal {tenant: $tenant, collection: $collection}) WHERE r.key IS NOT NULL
WITH r LIMIT $limit
OPTIONAL MATCH (m:Memory {tenant: $tenant, id: r.key}) WHERE $collection = 'graphembeddings'
OPTIONAL MATCH (l:Lesson {tenant: $tenant, rb_id: toInteger(r.key)}) WHERE $collection = 'reasoningbank'
RETURN collect({key: r.key, noted: r.noted, back: m IS NOT NULL OR l IS NOT NULL}) AS rows
