// The revisions of memories that a search has hit: a hit in another revision, or of no memory, is not true.
// params: $tenant, $ids
// returns: rows of id, revision
UNWIND $ids AS id
MATCH (m:Memory {tenant: $tenant, id: id})
RETURN collect({id: m.id, revision: m.revision}) AS rows
