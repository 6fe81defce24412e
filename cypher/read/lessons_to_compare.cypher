// Lessons by their ids, as far as they are compared with what was just learnt: without their sources, which may be many.
// params: $tenant, $ids
// returns: rows of rb_id, title, learned_by, key_lesson, context_to_prefer, namespace, outcome, status, merged_into
UNWIND $ids AS id
MATCH (l:Lesson {tenant: $tenant, rb_id: id})
RETURN collect(l {.rb_id, .title, .learned_by, .key_lesson, .context_to_prefer, .namespace, .outcome, .status, .merged_into}) AS rows
