// Locks lessons that must be there already.
// params: $tenant, $ids
// returns: rb_id, properties
UNWIND $ids AS id
MATCH (l:Lesson {tenant: $tenant, rb_id: id})
SET l.tenant = $tenant
WITH l WHERE l.rb_id IS NOT NULL // not deleted while its lock was waited for
RETURN l.rb_id AS rb_id, properties(l) AS properties
