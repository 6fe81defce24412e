// Notes that a link between two lessons, which this transaction has locked, is not to be suggested again.
// params: $tenant, $source, $target, $type, $now
// returns: nothing
UNWIND [[$source, $target]] AS pair
MATCH (a:Lesson {tenant: $tenant, rb_id: pair[0]})
CALL (pair) { // a subquery, so that the two look-ups are not multiplied
  MATCH (b:Lesson {tenant: $tenant, rb_id: pair[1]})
  RETURN b
}
MERGE (a)-[s:SUGGESTED {type: $type}]-(b)
ON CREATE SET s.tenant = $tenant, s.created_time = $now
SET s.state = 'REJECTED', s.rejected_time = $now
