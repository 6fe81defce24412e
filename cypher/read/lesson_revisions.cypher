// A page of lessons in the order of their ids: id, revision and whether it is marked. For comparing with the index.
// params: $tenant, $after, $limit
// returns: rows of key, revision, marked
MATCH (l:Lesson)
WHERE l.tenant = $tenant AND l.rb_id > $after
WITH l ORDER BY l.tenant, l.rb_id LIMIT $limit
RETURN collect({key: l.rb_id, revision: l.revision, marked: coalesce(l.to_index, false)}) AS rows
