// Locks memories that must be there already: the ends of edges, the sources of lessons.
// params: $tenant, $ids
// returns: id, type, properties
UNWIND $ids AS id
MATCH (m:Memory {tenant: $tenant, id: id})
SET m.tenant = $tenant
WITH m WHERE m.id IS NOT NULL // not deleted while its lock was waited for
RETURN m.id AS id, [l IN labels(m) WHERE l <> 'Memory'][0] AS type, properties(m) AS properties
