// Pairs of memories that may be joined by a machine-made edge: whether an edge joins them already, how many machine-made ones each has, and what the second says and carries.
// params: $tenant, $pairs [[memory id, memory id]]
// returns: rows of ends, joined, machine_made [of the first, of the second], text, tags, in the order of the pairs
UNWIND range(0, size($pairs) - 1) AS place
MATCH (s:Memory {tenant: $tenant, id: $pairs[place][0]})
CALL (place) { // a subquery, so that the two look-ups are not multiplied
  MATCH (t:Memory {tenant: $tenant, id: $pairs[place][1]})
  RETURN t
}
WITH place, s, t ORDER BY place
RETURN collect({ends: [s.id, t.id], text: t.text, tags: t.tags, joined: EXISTS { (s)-[:RELATES]-(t) },
  machine_made: [COUNT { (s)-[r:RELATES]-() WHERE r.machine_made }, COUNT { (t)-[r:RELATES]-() WHERE r.machine_made }]}) AS rows
