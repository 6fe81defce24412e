// What was said of the parts of merged lessons counts for these too. All of them are locked.
// params: $tenant, $rows [{merged, parts}]
// returns: nothing
UNWIND $rows AS row
MATCH (l:Lesson {tenant: $tenant, rb_id: row.merged})
CALL (l, row) {
  UNWIND row.parts AS part
  MATCH (s:Signal)-[:ABOUT]->(:Lesson {tenant: $tenant, rb_id: part})
  MERGE (s)-[about:ABOUT]->(l)
  ON CREATE SET about.copied = true
}
