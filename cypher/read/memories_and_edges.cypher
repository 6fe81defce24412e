// Memories and edges by their ids, in one round trip.
// params: $tenant, $ids (of memories), $edge_ids
// returns: rows of type, properties for each memory, then rows of source, target, properties for each edge
UNWIND $ids AS id
MATCH (m:Memory {tenant: $tenant, id: id})
WITH collect({type: [l IN labels(m) WHERE l <> 'Memory'][0], properties: m {.*, ingestion_time: toString(m.ingestion_time), update_time: toString(m.update_time)}}) AS memories
CALL (memories) {
  UNWIND $edge_ids AS id
  MATCH (s:Memory)-[r:RELATES {tenant: $tenant, id: id}]->(t:Memory)
  RETURN collect({source: s.id, target: t.id, properties: r {.*, created_time: toString(r.created_time)}}) AS edges
}
RETURN memories + edges AS rows
