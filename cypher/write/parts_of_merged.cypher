// Locks the lessons that a merged lesson was made of.
// params: $tenant, $merged
// returns: rows of rb_id, updated_before
MATCH (p:Lesson)-[into:MERGED_INTO]->(l:Lesson {tenant: $tenant, rb_id: $merged})
SET p.tenant = $tenant
RETURN collect({rb_id: p.rb_id, updated_before: into.updated_before}) AS rows
