// The links of lessons to other lessons, whichever way they point, the strongest first.
// params: $tenant, $ids
// returns: rows of rb_id, links [{source, target, type, strength, evidence, created_time, copied (from a part)}]; lessons without links are left out
UNWIND $ids AS id
MATCH (l:Lesson {tenant: $tenant, rb_id: id})
CALL (l) {
  MATCH (l)-[k:CAUSES|REQUIRES|CONFLICTS|ENHANCES|ALTERNATIVE]-(:Lesson)
  WITH k, startNode(k).rb_id AS source, endNode(k).rb_id AS target
  ORDER BY k.strength DESC, source, target, type(k)
  RETURN collect({source: source, target: target, type: type(k), strength: k.strength, evidence: k.evidence,
    created_time: toString(k.created_time), copied: k.copied}) AS links
}
WITH l, links WHERE size(links) > 0
RETURN collect({rb_id: l.rb_id, links: links}) AS rows
