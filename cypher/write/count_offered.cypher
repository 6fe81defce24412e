// Counts how often lessons were offered; one that is gone is left out.
// params: $tenant, $rows [[rb_id, how often]]
// returns: nothing
UNWIND $rows AS row
MATCH (l:Lesson {tenant: $tenant, rb_id: row[0]})
USING INDEX SEEK l:Lesson(tenant, rb_id)
SET l.tenant = $tenant
WITH l, row
SET l.offered_count = coalesce(l.offered_count, 0) + row[1]
