// What is compared of lessons.
// params: $tenant, $ids
// returns: rows of [rb_id, revision, status, namespace, scope, outcome, key_lesson, context_to_prefer, tags, link_nodes]
UNWIND $ids AS id
MATCH (l:Lesson {tenant: $tenant, rb_id: id})
RETURN collect([l.rb_id, l.revision, l.status, l.namespace, l.scope, l.outcome, l.key_lesson, l.context_to_prefer, l.tags, l.link_nodes]) AS rows
