// A page of memories in the order of their ids: id, revision and whether it is marked. For comparing with the index.
// params: $tenant, $after, $limit
// returns: key, revision, marked
MATCH (m:Memory)
WHERE m.tenant = $tenant AND m.id > $after
WITH m ORDER BY m.id LIMIT $limit
RETURN m.id AS key, m.revision AS revision, coalesce(m.to_index, false) AS marked
