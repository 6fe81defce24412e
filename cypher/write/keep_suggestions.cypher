// Keeps the links that a sweep suggests; what was rejected stays rejected.
// params: $tenant, $rows [{source, target, type, strength, evidence}], $now
// returns: nothing
UNWIND $rows AS row
MATCH (a:Lesson {tenant: $tenant, rb_id: row.source})
USING INDEX SEEK a:Lesson(tenant, rb_id)
CALL (row) { // a subquery, so that the two look-ups are not multiplied
  MATCH (b:Lesson {tenant: $tenant, rb_id: row.target})
  USING INDEX SEEK b:Lesson(tenant, rb_id)
  RETURN b
}
MERGE (a)-[s:SUGGESTED {type: row.type}]-(b)
ON CREATE SET s.tenant = $tenant, s.state = 'OPEN', s.created_time = $now
SET s.strength = row.strength, s.evidence = row.evidence, s.found_time = $now
