// Takes a lesson out of the merged lesson that it became part of, for good: it is not merged with that one again, nor with
// what that one became part of, nor with its other parts. The lesson is locked.
// params: $tenant, $part, $now
// returns: nothing
MATCH (p:Lesson {tenant: $tenant, rb_id: $part})-[into:MERGED_INTO]->(l:Lesson)
SET l.tenant = $tenant
WITH p, into, l
CALL (p, l) {
  MATCH (l)-[:MERGED_INTO*0..20]->(o:Lesson)
  RETURN o
  UNION
  MATCH (o:Lesson)-[:MERGED_INTO]->(l)
  WHERE o.rb_id <> p.rb_id
  RETURN o
}
MERGE (p)-[apart:KEPT_APART]-(o)
SET apart.tenant = $tenant, apart.created_time = $now
WITH DISTINCT p, into, l
SET l.merged_from = [x IN l.merged_from WHERE x <> p.rb_id]
DELETE into
