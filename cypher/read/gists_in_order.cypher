// A page of lessons in the order of their ids, with what is compared of them: for looking over the bank.
// params: $tenant, $after, $limit
// returns: rows of [rb_id, revision, status, namespace, scope, outcome, key_lesson, context_to_prefer, tags, link_nodes]
MATCH (l:Lesson)
WHERE l.tenant = $tenant AND l.rb_id > $after
WITH l ORDER BY l.tenant, l.rb_id LIMIT $limit
RETURN collect([l.rb_id, l.revision, l.status, l.namespace, l.scope, l.outcome, l.key_lesson, l.context_to_prefer, l.tags, l.link_nodes]) AS rows
