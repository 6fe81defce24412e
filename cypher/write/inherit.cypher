// What was told of a merged lesson itself, and not of its parts, is told of lessons that it is given back to. All are locked.
// params: $tenant, $merged, $heirs
// returns: rows of rb_id, counted [arm, succeeded]: the recalls that count for each of them now
UNWIND $heirs AS heir
MATCH (p:Lesson {tenant: $tenant, rb_id: heir})
USING INDEX SEEK p:Lesson(tenant, rb_id)
CALL (p) {
  MATCH (s:Signal)-[own:ABOUT]->(l:Lesson {tenant: $tenant, rb_id: $merged})
  USING INDEX SEEK l:Lesson(tenant, rb_id)
  WHERE own.copied IS NULL
  MERGE (s)-[:ABOUT]->(p)
}
CALL (p) {
  MATCH (r:Receipt)-[own:COUNTED]->(l:Lesson {tenant: $tenant, rb_id: $merged})
  USING INDEX SEEK l:Lesson(tenant, rb_id)
  WHERE own.copied IS NULL AND NOT EXISTS { (r)-[:COUNTED]->(p) }
  CREATE (r)-[:COUNTED {arm: own.arm}]->(p)
  RETURN collect([own.arm, r.succeeded]) AS counted
}
RETURN collect({rb_id: heir, counted: counted}) AS rows
