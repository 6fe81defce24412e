// Takes the mark "still to be indexed" off lessons that are still in the revision that was indexed.
// params: $tenant, $rows [[rb_id, revision]]
// returns: cleared
UNWIND $rows AS row
MATCH (l:Lesson {tenant: $tenant, rb_id: row[0]})
SET l.tenant = $tenant
WITH l, row WHERE l.revision = row[1]
REMOVE l.to_index
RETURN count(l) AS cleared
