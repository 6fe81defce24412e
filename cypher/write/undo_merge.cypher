// Parts the lessons of a merge again, for good: they are not merged with each other once more, nor with what they were.
// That one's links go. All of them are locked.
// params: $tenant, $merged, $pairs [[rb_id, rb_id]], $now
// returns: nothing
MATCH (l:Lesson {tenant: $tenant, rb_id: $merged})
CALL (l) {
  MATCH (:Lesson)-[into:MERGED_INTO]->(l)
  DELETE into
}
CALL (l) {
  MATCH (l)-[k:CAUSES|REQUIRES|CONFLICTS|ENHANCES|ALTERNATIVE]-(:Lesson)
  DELETE k
}
WITH l
UNWIND $pairs AS pair
MATCH (a:Lesson {tenant: $tenant, rb_id: pair[0]})
CALL (pair) { // a subquery, so that the two look-ups are not multiplied
  MATCH (b:Lesson {tenant: $tenant, rb_id: pair[1]})
  RETURN b
}
MERGE (a)-[apart:KEPT_APART]-(b)
SET apart.tenant = $tenant, apart.created_time = $now
