// Connects lessons that this transaction has locked; a link that is there gets the new strength and evidence and keeps its time.
// What was suggested of the pair, or rejected, is settled by it.
// params: $tenant, $rows [{source, target, type, strength, evidence}], $now
// returns: rows of source, target, type, strength, evidence, created_time
UNWIND $rows AS row
MATCH (s:Lesson {tenant: $tenant, rb_id: row.source})
CALL (row) { // a subquery, so that the two look-ups are not multiplied
  MATCH (t:Lesson {tenant: $tenant, rb_id: row.target})
  RETURN t
}
MERGE (s)-[k:$(row.type)]->(t)
ON CREATE SET k.tenant = $tenant, k.created_time = $now
SET k.strength = row.strength, k.evidence = row.evidence
WITH s, t, k
OPTIONAL MATCH (s)-[suggested:SUGGESTED {type: type(k)}]-(t)
DELETE suggested
WITH DISTINCT s, t, k
RETURN collect({source: s.rb_id, target: t.rb_id, type: type(k), strength: k.strength, evidence: k.evidence,
  created_time: toString(k.created_time)}) AS rows
