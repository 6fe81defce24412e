// The lessons of a namespace that no search can find yet.
// params: $tenant, $namespace
// returns: rows of rb_id, title, learned_by, key_lesson, context_to_prefer, namespace, outcome, status
MATCH (l:Lesson {tenant: $tenant, to_index: true})
WHERE l.namespace = $namespace
RETURN collect(l {.rb_id, .title, .learned_by, .key_lesson, .context_to_prefer, .namespace, .outcome, .status}) AS rows
