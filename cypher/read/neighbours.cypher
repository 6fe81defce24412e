// The lean surroundings of several memories, both ways: ids and weights only, no texts.
// params: $tenant, $ids, $min_weight, $limit (edges of one memory, strongest first)
// returns: rows of memory, edges [[edge id, neighbour id, weight, whether the edge leads away from the memory]]
UNWIND $ids AS id
MATCH (m:Memory {tenant: $tenant, id: id})
CALL (m) {
  MATCH (m)-[r:RELATES]-(n:Memory)
  WHERE r.weight >= $min_weight
  WITH r, n ORDER BY r.weight DESC, r.id LIMIT $limit
  WITH [r.id, n.id, r.weight, startNode(r) = m] AS edge
  WHERE NOT any(part IN edge WHERE part IS NULL) // not deleted while it was read
  RETURN collect(edge) AS edges
}
RETURN collect({memory: m.id, edges: edges}) AS rows
