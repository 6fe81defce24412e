// How many records there are, by the collection that has their rows.
// params: $tenant
// returns: graphembeddings, reasoningbank
RETURN
  COUNT { MATCH (m:Memory {tenant: $tenant}) WHERE m.id IS NOT NULL } AS graphembeddings,
  COUNT { MATCH (l:Lesson {tenant: $tenant}) WHERE l.rb_id IS NOT NULL } AS reasoningbank
