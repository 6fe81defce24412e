// Deletes memories that no lesson was learnt from, with their edges; their rows in the vector store are noted for removal.
// params: $tenant, $ids
// returns: memories, edges (how many were deleted)
UNWIND $ids AS id
MATCH (m:Memory {tenant: $tenant, id: id})
MERGE (r:Removal {tenant: $tenant, collection: 'graphembeddings', key: id}) SET r.noted = randomUUID()
WITH collect(m) AS gone
CALL (gone) {
  UNWIND gone AS m
  MATCH (m)-[r:RELATES]-(:Memory)
  RETURN collect(DISTINCT r) AS sentences
}
FOREACH (r IN sentences | DELETE r)
FOREACH (m IN gone | DETACH DELETE m)
RETURN size(gone) AS memories, size(sentences) AS edges
