// A page of the edges of each of several memories, strongest first; the cursor is the last one's weight and id.
// params: $tenant, $ids, $outgoing, $incoming, $min_weight, $tags, $before_weight, $before_id, $limit
// returns: rows of memory, edges [{source, target, properties}]
UNWIND $ids AS id
MATCH (m:Memory {tenant: $tenant, id: id})
CALL (m) {
  MATCH (m)-[r:RELATES]-(:Memory)
  WHERE (($outgoing AND startNode(r) = m) OR ($incoming AND endNode(r) = m))
    AND r.weight >= $min_weight
    AND all(tag IN $tags WHERE tag IN r.tags)
    AND ($before_id IS NULL OR r.weight < $before_weight OR (r.weight = $before_weight AND r.id > $before_id))
  WITH r ORDER BY r.weight DESC, r.id LIMIT $limit
  WITH {source: startNode(r).id, target: endNode(r).id, properties: r {.*, created_time: toString(r.created_time)}} AS edge
  WHERE edge.source IS NOT NULL AND edge.target IS NOT NULL AND edge.properties.id IS NOT NULL // not deleted while it was read
  RETURN collect(edge) AS edges
}
RETURN collect({memory: m.id, edges: edges}) AS rows
