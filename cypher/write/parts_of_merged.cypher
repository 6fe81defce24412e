// Locks the lessons that a merged lesson is made of.
// params: $tenant, $merged
// returns: rows of rb_id, updated_before, keeps (the merged lesson has its text), link_nodes, tags
MATCH (p:Lesson)-[into:MERGED_INTO]->(l:Lesson {tenant: $tenant, rb_id: $merged})
SET p.tenant = $tenant
WITH p, into WHERE p.merged_into = $merged
RETURN collect({rb_id: p.rb_id, updated_before: into.updated_before, keeps: coalesce(into.keeps, false), link_nodes: p.link_nodes, tags: p.tags}) AS rows
