// Makes both sides of every link agree, from the memories' side: a link that one side knows is completed on the other,
// a pointer to no lesson is dropped, and so is what is there twice.
// params: $tenant, $after, $limit, $revision (of the lessons that change)
// returns: last (the last memory id looked at; null: there are no more)
MATCH (m:Memory)
WHERE m.tenant = $tenant AND m.id > $after
WITH m ORDER BY m.tenant, m.id LIMIT $limit
SET m.tenant = $tenant
WITH m
CALL (m) { // another tenant's lesson has nothing to do with it, whoever has drawn that
  MATCH (m)<-[foreign:LEARNED_FROM]-(l) WHERE coalesce(l.tenant, '') <> $tenant
  DELETE foreign
}
WITH m, COLLECT { MATCH (m)<-[:LEARNED_FROM]-(l:Lesson) RETURN l.rb_id } AS linked
WITH m, CASE WHEN m.reasoning_pointer_ids IS :: LIST<INTEGER NOT NULL> NOT NULL THEN m.reasoning_pointer_ids ELSE [] END + linked AS wanted // whoever made it by hand
CALL (m, wanted) {
  UNWIND wanted AS rb_id
  WITH DISTINCT m, rb_id
  MATCH (l:Lesson {tenant: $tenant, rb_id: rb_id})
  SET l.tenant = $tenant
  MERGE (l)-[r:LEARNED_FROM]->(m)
  WITH m, l, collect(r) AS same
  FOREACH (r IN same[1..] | DELETE r)
  WITH m, l, CASE WHEN l.link_nodes IS :: LIST<STRING NOT NULL> NOT NULL THEN l.link_nodes ELSE [] END AS links
  FOREACH (_ IN CASE WHEN m.id IN links THEN [] ELSE [1] END |
    SET l.link_nodes = links + m.id, l.version = coalesce(l.version, 0) + 1, l.revision = $revision, l.to_index = true)
  RETURN collect(l.rb_id) AS found
}
SET m.reasoning_pointer_ids = found
RETURN max(m.id) AS last
