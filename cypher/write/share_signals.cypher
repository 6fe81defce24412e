// What was said of the parts of a merged lesson counts for it too. All of them are locked.
// params: $tenant, $merged, $parts
// returns: nothing
MATCH (l:Lesson {tenant: $tenant, rb_id: $merged})
CALL (l) {
  UNWIND $parts AS part
  MATCH (s:Signal)-[:ABOUT]->(:Lesson {tenant: $tenant, rb_id: part})
  MERGE (s)-[:ABOUT]->(l)
}
