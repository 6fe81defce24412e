// The edges whose two ends are both among the given memories.
// params: $tenant, $ids
// returns: source, target, properties
UNWIND $ids AS id
MATCH (s:Memory {tenant: $tenant, id: id})-[r:RELATES]->(t:Memory)
WHERE t.id IN $ids
RETURN s.id AS source, t.id AS target, properties(r) AS properties
ORDER BY r.created_time, r.id
