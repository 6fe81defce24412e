// Appends signals, each about a lesson that this transaction has locked, and about those that this one became part of;
// a lesson that was brought back may be pruned again.
// params: $tenant, $rows [{rb_id, wholes, properties}]
// returns: nothing
UNWIND $rows AS row
MATCH (l:Lesson {tenant: $tenant, rb_id: row.rb_id})
USING INDEX SEEK l:Lesson(tenant, rb_id)
CREATE (s:Signal)-[:ABOUT]->(l)
SET s = row.properties, s.tenant = $tenant
REMOVE l.reinstated
WITH row, s
UNWIND row.wholes AS whole
MATCH (w:Lesson {tenant: $tenant, rb_id: whole})
USING INDEX SEEK w:Lesson(tenant, rb_id)
CREATE (s)-[:ABOUT {copied: true}]->(w)
REMOVE w.reinstated
