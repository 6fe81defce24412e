// Sessions as a distiller reads them: what was handed in, from the memories that keep it.
// params: $tenant, $ids
// returns: rows of session (properties), memories [{type, properties}] in the order of the work
UNWIND $ids AS id
MATCH (s:Session {tenant: $tenant, id: id})-[r:RECORDED]->(m:Memory)
WITH s, m, r ORDER BY r.place
WITH s, collect({type: [l IN labels(m) WHERE l <> 'Memory'][0], properties: m {.id, .text, .parameter_field, .result}}) AS memories
RETURN collect({session: s {.id, .conv_id, .outcome, .tags, .namespace}, memories: memories}) AS rows
