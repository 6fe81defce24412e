// The revisions that the graph holds of the given memories, and which are to be removed from the index anyway.
// params: $tenant, $keys
// returns: key, revision (null: there is no such memory), marked, removal
UNWIND $keys AS key
OPTIONAL MATCH (m:Memory {tenant: $tenant, id: key})
OPTIONAL MATCH (r:Removal {tenant: $tenant, collection: 'graphembeddings', key: key})
RETURN key, m.revision AS revision, coalesce(m.to_index, false) AS marked, r IS NOT NULL AS removal
