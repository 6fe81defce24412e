// Deletes an edge.
// params: $tenant, $id
// returns: deleted (how many: 0 or 1)
MATCH (:Memory)-[r:RELATES {tenant: $tenant, id: $id}]->(:Memory)
USING INDEX SEEK r:RELATES(tenant, id)
DELETE r
RETURN count(r) AS deleted
