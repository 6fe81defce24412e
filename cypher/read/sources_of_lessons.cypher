// The memories that lessons were learnt from.
// params: $tenant, $ids
// returns: rows of id
UNWIND $ids AS rb_id
MATCH (l:Lesson {tenant: $tenant, rb_id: rb_id})
UNWIND l.link_nodes AS id
WITH DISTINCT id
RETURN collect({id: id}) AS rows
