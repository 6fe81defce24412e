// How much index work is left: marked memories, marked lessons, rows to be removed.
// params: $tenant
// returns: memories, lessons, removals
RETURN
  COUNT { MATCH (m:Memory {tenant: $tenant, to_index: true}) } AS memories,
  COUNT { MATCH (l:Lesson {tenant: $tenant, to_index: true}) } AS lessons,
  COUNT { MATCH (r:Removal {tenant: $tenant}) WHERE r.collection IS NOT NULL AND r.key IS NOT NULL } AS removals
