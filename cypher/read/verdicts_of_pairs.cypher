// What was said of pairs of lessons before: their links, the suggestions that were rejected, and whether they are kept apart.
// params: $tenant, $pairs [[rb_id, rb_id]]
// returns: rows of one, other, links (types), rejected (types), kept_apart
UNWIND $pairs AS pair
MATCH (a:Lesson {tenant: $tenant, rb_id: pair[0]})
USING INDEX SEEK a:Lesson(tenant, rb_id)
CALL (pair) { // a subquery, so that the two look-ups are not multiplied
  MATCH (b:Lesson {tenant: $tenant, rb_id: pair[1]})
  USING INDEX SEEK b:Lesson(tenant, rb_id)
  RETURN b
}
RETURN collect({one: a.rb_id, other: b.rb_id,
  links: COLLECT { MATCH (a)-[k:CAUSES|REQUIRES|CONFLICTS|ENHANCES|ALTERNATIVE]-(b) RETURN type(k) },
  rejected: COLLECT { MATCH (a)-[s:SUGGESTED]-(b) WHERE s.state = 'REJECTED' RETURN s.type },
  kept_apart: EXISTS { (a)-[:KEPT_APART]-(b) }}) AS rows
