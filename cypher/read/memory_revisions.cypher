// A page of memories in the order of their ids: id, revision and whether it is marked. For comparing with the index.
// params: $tenant, $after, $limit
// returns: rows of key, revision, marked
MATCH (m:Memory)
WHERE m.tenant = $tenant AND m.id > $after
WITH m ORDER BY m.tenant, m.id LIMIT $limit
RETURN collect({key: m.id, revision: m.revision, marked: coalesce(m.to_index, false)}) AS rows
