// What the graph holds of the given memories that their index rows must say too, and which rows are to be removed anyway.
// params: $tenant, $keys
// returns: rows of key, values (what a true row says; null: there is no such memory), name (its row, as the memory names it), marked, removal
UNWIND $keys AS key
OPTIONAL MATCH (m:Memory {tenant: $tenant, id: key})
OPTIONAL MATCH (r:Removal {tenant: $tenant, collection: 'graphembeddings', key: key})
RETURN collect({key: key, marked: coalesce(m.to_index, false), removal: r IS NOT NULL, name: coalesce(m.embedding_id, ''),
  values: CASE WHEN m IS NOT NULL THEN
    [{revision: m.revision, version: m.version, type: [l IN labels(m) WHERE l <> 'Memory'][0]}] END}) AS rows
