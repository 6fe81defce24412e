// The edges whose two ends are both among the given memories.
// params: $tenant, $ids
// returns: rows of source, target, properties
UNWIND $ids AS id
MATCH (s:Memory {tenant: $tenant, id: id})-[r:RELATES]->(t:Memory)
WHERE t.id IN $ids
WITH s, r, t ORDER BY r.created_time, r.id
RETURN collect({source: s.id, target: t.id, properties: r {.*, created_time: toString(r.created_time)}}) AS rows
