// Makes both sides of every link agree, from the lessons' side: a link that one side knows is completed on the other,
// a link to no memory becomes a lost source, and one that is there twice is there once.
// params: $tenant, $after, $limit, $revision (of the lessons that change)
// returns: last (the last lesson id looked at; null: there are no more)
MATCH (l:Lesson)
WHERE l.tenant = $tenant AND l.rb_id > $after
WITH l ORDER BY l.tenant, l.rb_id LIMIT $limit
SET l.tenant = $tenant
WITH l, CASE WHEN l.link_nodes IS :: LIST<STRING NOT NULL> NOT NULL THEN l.link_nodes ELSE [] END AS links // whoever made it by hand
CALL (l, links) {
  UNWIND links AS id
  WITH DISTINCT l, id
  MATCH (m:Memory {tenant: $tenant, id: id})
  SET m.tenant = $tenant
  MERGE (l)-[:LEARNED_FROM]->(m)
  WITH l, m, id, CASE WHEN m.reasoning_pointer_ids IS :: LIST<INTEGER NOT NULL> NOT NULL THEN m.reasoning_pointer_ids ELSE [] END AS pointers
  // Their order tells which was linked last.
  SET m.reasoning_pointer_ids = CASE WHEN l.rb_id IN pointers THEN pointers ELSE pointers + l.rb_id END
  RETURN collect(id) AS found
}
WITH l, links, found, [x IN links WHERE NOT x IN found] AS lost
FOREACH (_ IN CASE WHEN size(found) = size(links) THEN [] ELSE [1] END |
  SET l.link_nodes = found, l.lost_sources = [x IN coalesce(l.lost_sources, []) WHERE NOT x IN lost] + lost,
    l.version = coalesce(l.version, 0) + 1, l.revision = $revision, l.to_index = true)
RETURN max(l.rb_id) AS last
