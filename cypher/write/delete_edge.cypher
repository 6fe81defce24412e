// Deletes an edge.
// params: $tenant, $id
// returns: deleted (how many: 0 or 1)
MATCH (:Memory)-[r:RELATES {tenant: $tenant, id: $id}]->(:Memory)
DELETE r
RETURN count(r) AS deleted
