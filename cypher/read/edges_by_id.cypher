// Edges by their ids.
// params: $tenant, $ids
// returns: rows of source, target, properties
UNWIND $ids AS id
MATCH (s:Memory)-[r:RELATES {tenant: $tenant, id: id}]->(t:Memory)
RETURN collect({source: s.id, target: t.id, properties: r {.*, created_time: toString(r.created_time)}}) AS rows
