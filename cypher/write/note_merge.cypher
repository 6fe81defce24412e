// Notes which lessons a merged lesson was made of, and how they stood before. All of them are locked.
// params: $tenant, $parts [{rb_id, merged, updated_at, keeps (the merged lesson has its text)}], $now
// returns: nothing
UNWIND $parts AS part
MATCH (p:Lesson {tenant: $tenant, rb_id: part.rb_id})
CALL (part) { // a subquery, so that the two look-ups are not multiplied
  MATCH (l:Lesson {tenant: $tenant, rb_id: part.merged})
  RETURN l
}
MERGE (p)-[into:MERGED_INTO]->(l)
SET into.tenant = $tenant, into.created_time = $now, into.updated_before = part.updated_at, into.keeps = part.keeps
