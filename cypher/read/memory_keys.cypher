// A page of the keys of memories, in their order. For comparing with the index.
// params: $tenant, $after, $limit
// returns: rows of key
MATCH (m:Memory)
WHERE m.tenant = $tenant AND m.id > $after
WITH m ORDER BY m.tenant, m.id LIMIT $limit
RETURN collect({key: m.id}) AS rows
