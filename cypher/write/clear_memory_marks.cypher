// Takes the mark "still to be indexed" off memories that are still in the revision that was indexed.
// params: $tenant, $rows [[id, revision]]
// returns: cleared
UNWIND $rows AS row
MATCH (m:Memory {tenant: $tenant, id: row[0]})
SET m.tenant = $tenant
WITH m, row WHERE m.revision = row[1]
REMOVE m.to_index
RETURN count(m) AS cleared
