// Appends signals, each about a lesson that this transaction has locked; one that was brought back may be pruned again.
// params: $tenant, $rows [{rb_id, properties}]
// returns: nothing
UNWIND $rows AS row
MATCH (l:Lesson {tenant: $tenant, rb_id: row.rb_id})
CREATE (s:Signal)-[:ABOUT]->(l)
SET s = row.properties, s.tenant = $tenant
REMOVE l.reinstated
