// The sessions of a namespace whose requests these are, as a distiller reads them to compare: long details are cut,
// as `bank/steps.py` cuts those of the session they are compared with.
// params: $tenant, $requests (ids of memories, nearest first), $namespace, $but (the id of a session), $limit
// returns: rows of session (properties), memories [{type, properties}] in the order of the work; nearest first
UNWIND range(0, size($requests) - 1) AS nearness
MATCH (:Memory {tenant: $tenant, id: $requests[nearness]})<-[:RECORDED {place: 0}]-(s:Session)
WHERE s.namespace = $namespace AND s.id <> $but
WITH s, nearness ORDER BY nearness LIMIT $limit
CALL (s) {
  MATCH (s)-[r:RECORDED]->(m:Memory)
  WITH m, r ORDER BY r.place
  RETURN collect({type: [l IN labels(m) WHERE l <> 'Memory'][0], properties: m {.id, .text, parameter_field: left(m.parameter_field, 8001), result: CASE WHEN size(m.result) > 4000 THEN left(m.result, 3401) + right(m.result, 600) ELSE m.result END}}) AS memories
}
WITH s, nearness, memories ORDER BY nearness
RETURN collect({session: s {.id, .conv_id, .outcome, .tags, .namespace}, memories: memories}) AS rows
