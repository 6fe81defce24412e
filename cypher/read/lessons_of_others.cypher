// Which of these lesson ids other tenants have taken. It tells no more of them than that.
// params: $tenant, $ids
// returns: rows of rb_id
UNWIND $ids AS id
MATCH (l:Lesson {rb_id: id})
WHERE l.tenant <> $tenant
RETURN collect({rb_id: l.rb_id}) AS rows
