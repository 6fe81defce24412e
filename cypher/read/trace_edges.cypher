// The edges along which a lesson is traced back from several memories, both ways: lean, no texts. An edge of weight 0 leads nowhere.
// params: $tenant, $ids, $origins (types), $only_origins (whether only edges to memories of these types are wanted), $limit (edges of one memory, strongest first)
// returns: rows of memory, edges [[edge id, neighbour id, weight, whether the edge leads away, the neighbour's type]]
UNWIND $ids AS id
MATCH (m:Memory {tenant: $tenant, id: id})
CALL (m) {
  MATCH (m)-[r:RELATES]-(n:Memory)
  WHERE r.weight > 0 AND (NOT $only_origins OR any(l IN labels(n) WHERE l IN $origins))
  WITH r, n ORDER BY r.weight DESC, r.id LIMIT $limit
  WITH [r.id, n.id, r.weight, startNode(r) = m, [l IN labels(n) WHERE l <> 'Memory'][0]] AS edge
  WHERE NOT any(part IN edge WHERE part IS NULL) // not deleted while it was read
  RETURN collect(edge) AS edges
}
RETURN collect({memory: m.id, edges: edges}) AS rows
