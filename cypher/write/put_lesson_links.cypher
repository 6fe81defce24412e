// Connects lessons that this transaction has locked; a link that is there gets the new strength and evidence and keeps its time,
// but a copy of a part's link changes none that the lesson was given itself.
// What was suggested of the pair, or rejected, is settled by it. A clause a type: MERGE with a dynamic type scans all relationships.
// params: $tenant, $rows [{source, target, type, strength, evidence, copied (or not given)}], $now
// returns: rows of source, target, type, strength, evidence, created_time
UNWIND $rows AS row
MATCH (s:Lesson {tenant: $tenant, rb_id: row.source})
CALL (row) { // a subquery, so that the two look-ups are not multiplied
  MATCH (t:Lesson {tenant: $tenant, rb_id: row.target})
  RETURN t
}
FOREACH (_ IN CASE WHEN row.type = 'CAUSES' THEN [1] ELSE [] END | MERGE (s)-[:CAUSES]->(t))
FOREACH (_ IN CASE WHEN row.type = 'REQUIRES' THEN [1] ELSE [] END | MERGE (s)-[:REQUIRES]->(t))
FOREACH (_ IN CASE WHEN row.type = 'CONFLICTS' THEN [1] ELSE [] END | MERGE (s)-[:CONFLICTS]->(t))
FOREACH (_ IN CASE WHEN row.type = 'ENHANCES' THEN [1] ELSE [] END | MERGE (s)-[:ENHANCES]->(t))
FOREACH (_ IN CASE WHEN row.type = 'ALTERNATIVE' THEN [1] ELSE [] END | MERGE (s)-[:ALTERNATIVE]->(t))
WITH row, s, t
MATCH (s)-[k:CAUSES|REQUIRES|CONFLICTS|ENHANCES|ALTERNATIVE]->(t)
WHERE type(k) = row.type
FOREACH (_ IN CASE WHEN row.copied AND k.created_time IS NOT NULL AND k.copied IS NULL THEN [] ELSE [1] END |
  SET k.tenant = $tenant, k.created_time = coalesce(k.created_time, $now), k.strength = row.strength, k.evidence = row.evidence, k.copied = row.copied)
WITH row, s, t, k
CALL (row, s, t) {
  MATCH (s)-[suggested:SUGGESTED]-(t)
  WHERE suggested.type = row.type
  DELETE suggested
}
RETURN collect({source: s.rb_id, target: t.rb_id, type: type(k), strength: k.strength, evidence: k.evidence,
  created_time: toString(k.created_time)}) AS rows
