// Takes one link between two lessons away; with $copies only one that was copied from parts of theirs, none of which has it now.
// params: $tenant, $source, $target, $type, $both_ways, $copies
// returns: deleted (how many)
MATCH (s:Lesson {tenant: $tenant, rb_id: $source})
USING INDEX SEEK s:Lesson(tenant, rb_id)
CALL (s) {
  MATCH (s)-[k:CAUSES|REQUIRES|CONFLICTS|ENHANCES|ALTERNATIVE]-(t:Lesson)
  WHERE t.rb_id = $target AND type(k) = $type AND ($both_ways OR startNode(k) = s)
    AND (NOT $copies OR k.copied
      AND NOT EXISTS { (s)<-[:MERGED_INTO]-(:Lesson)-[p:CAUSES|REQUIRES|CONFLICTS|ENHANCES|ALTERNATIVE]-(t) WHERE type(p) = $type AND ($both_ways OR endNode(p) = t) }
      AND NOT EXISTS { (t)<-[:MERGED_INTO]-(:Lesson)-[q:CAUSES|REQUIRES|CONFLICTS|ENHANCES|ALTERNATIVE]-(s) WHERE type(q) = $type AND ($both_ways OR startNode(q) = s) })
  RETURN k
}
DELETE k
RETURN count(k) AS deleted
