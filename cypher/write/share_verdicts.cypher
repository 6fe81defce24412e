// What was said of the parts of merged lessons and of others holds for these too: kept apart, and which links were rejected.
// One after the other, so that the second of two that are merged at once meets what the first was given.
// params: $tenant, $rows [{merged, parts}]
// returns: nothing
UNWIND $rows AS row
MATCH (l:Lesson {tenant: $tenant, rb_id: row.merged})
CALL (l, row) {
  UNWIND row.parts AS part
  MATCH (:Lesson {tenant: $tenant, rb_id: part})-[said:KEPT_APART]-(o:Lesson)
  WHERE NOT o.rb_id IN row.parts
  MERGE (l)-[apart:KEPT_APART]-(o)
  SET apart.tenant = $tenant, apart.created_time = said.created_time
}
CALL (l, row) {
  UNWIND row.parts AS part
  MATCH (:Lesson {tenant: $tenant, rb_id: part})-[said:SUGGESTED]-(o:Lesson)
  WHERE said.state = 'REJECTED' AND NOT o.rb_id IN row.parts
  MERGE (l)-[rejected:SUGGESTED {type: said.type}]-(o)
  SET rejected.tenant = $tenant, rejected.state = 'REJECTED', rejected.created_time = said.created_time, rejected.rejected_time = said.rejected_time
}
