// A page of lessons in the order of their ids: id, revision and whether it is marked. For comparing with the index.
// params: $tenant, $after, $limit
// returns: key, revision, marked
MATCH (l:Lesson)
WHERE l.tenant = $tenant AND l.rb_id > $after
WITH l ORDER BY l.rb_id LIMIT $limit
RETURN l.rb_id AS key, l.revision AS revision, coalesce(l.to_index, false) AS marked
