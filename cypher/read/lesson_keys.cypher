// A page of the keys of lessons, in their order. For comparing with the index.
// params: $tenant, $after, $limit
// returns: rows of key
MATCH (l:Lesson)
WHERE l.tenant = $tenant AND l.rb_id > $after
WITH l ORDER BY l.tenant, l.rb_id LIMIT $limit
RETURN collect({key: l.rb_id}) AS rows
