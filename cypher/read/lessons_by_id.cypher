// Lessons by their ids.
// params: $tenant, $ids
// returns: properties
UNWIND $ids AS id
MATCH (l:Lesson {tenant: $tenant, rb_id: id})
RETURN properties(l) AS properties
