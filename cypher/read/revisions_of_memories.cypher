// The revisions that the graph holds of the given memories, and which are to be removed from the index anyway.
// params: $tenant, $keys
// returns: rows of key, revision (null: there is no such memory), marked, removal
UNWIND $keys AS key
OPTIONAL MATCH (m:Memory {tenant: $tenant, id: key})
OPTIONAL MATCH (r:Removal {tenant: $tenant, collection: 'graphembeddings', key: key})
RETURN collect({key: key, revision: m.revision, marked: coalesce(m.to_index, false), removal: r IS NOT NULL}) AS rows
