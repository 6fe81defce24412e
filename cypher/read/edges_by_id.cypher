// Edges by their ids.
// params: $tenant, $ids
// returns: source, target, properties
UNWIND $ids AS id
MATCH (s:Memory)-[r:RELATES {tenant: $tenant, id: id}]->(t:Memory)
RETURN s.id AS source, t.id AS target, properties(r) AS properties
