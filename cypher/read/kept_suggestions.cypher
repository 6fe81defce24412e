// A page of the links that a sweep suggested and nobody has settled, the strongest first.
// params: $tenant, $strength, $source, $target, $type (where the page before ended), $limit
// returns: rows of source, target, type, strength, evidence
MATCH (a:Lesson)-[s:SUGGESTED]->(b:Lesson)
WHERE s.tenant = $tenant AND s.state = 'OPEN' AND s.strength <= $strength
  AND (s.strength < $strength OR a.rb_id > $source OR a.rb_id = $source AND (b.rb_id > $target OR b.rb_id = $target AND s.type > $type))
  AND a.status = 'ACTIVE' AND b.status = 'ACTIVE' AND NOT EXISTS { (a)-[:CAUSES|REQUIRES|CONFLICTS|ENHANCES|ALTERNATIVE]-(b) }
WITH a, b, s ORDER BY s.strength DESC, a.rb_id, b.rb_id, s.type LIMIT $limit
RETURN collect({source: a.rb_id, target: b.rb_id, type: s.type, strength: s.strength, evidence: s.evidence}) AS rows
