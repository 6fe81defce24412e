// Takes one link between two lessons away.
// params: $tenant, $source, $target, $type, $both_ways
// returns: deleted (how many)
MATCH (s:Lesson {tenant: $tenant, rb_id: $source})
CALL (s) {
  MATCH (s)-[k:CAUSES|REQUIRES|CONFLICTS|ENHANCES|ALTERNATIVE]-(t:Lesson)
  WHERE t.rb_id = $target AND type(k) = $type AND ($both_ways OR startNode(k) = s)
  RETURN k
}
DELETE k
RETURN count(k) AS deleted
