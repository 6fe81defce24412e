// The lessons of a namespace that no search can find yet, and those with one of these titles.
// params: $tenant, $namespace, $titles
// returns: rows of rb_id, title, learned_by, key_lesson, context_to_prefer, namespace, outcome, status, merged_into
CALL () {
  MATCH (l:Lesson {tenant: $tenant, to_index: true}) RETURN l
  UNION
  MATCH (l:Lesson {tenant: $tenant}) WHERE l.title IN $titles RETURN l
}
WITH l WHERE l.namespace = $namespace
RETURN collect(l {.rb_id, .title, .learned_by, .key_lesson, .context_to_prefer, .namespace, .outcome, .status, .merged_into}) AS rows
