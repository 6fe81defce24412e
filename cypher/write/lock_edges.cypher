// Finds edges by their ids and locks them.
// params: $tenant, $ids
// returns: source, target, properties
UNWIND $ids AS id
MATCH (s:Memory)-[r:RELATES {tenant: $tenant, id: id}]->(t:Memory)
SET r.tenant = $tenant
WITH s, r, t WHERE r.id IS NOT NULL // not deleted while its lock was waited for
RETURN s.id AS source, t.id AS target, properties(r) AS properties
