// Finds edges by their ids and locks them.
// params: $tenant, $ids
// returns: rows of source, target, properties
UNWIND $ids AS id
MATCH (s:Memory)-[r:RELATES {tenant: $tenant, id: id}]->(t:Memory)
SET r.tenant = $tenant
WITH s, r, t WHERE r.id IS NOT NULL // not deleted while its lock was waited for
RETURN collect({source: s.id, target: t.id, properties: r {.*, created_time: toString(r.created_time)}}) AS rows
