// Locks memories that must be there already: the ends of edges, the sources of lessons.
// params: $tenant, $ids
// returns: rows of id
UNWIND $ids AS id
MATCH (m:Memory {tenant: $tenant, id: id})
SET m.tenant = $tenant
WITH m WHERE m.id IS NOT NULL // not deleted while its lock was waited for
RETURN collect({id: m.id}) AS rows
