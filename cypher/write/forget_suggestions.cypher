// Forgets what was suggested of these lessons and earlier ones, is not settled, and was not found by the sweep that runs.
// params: $tenant, $ids
// returns: nothing
MATCH (w:Sweep {tenant: $tenant, kind: 'SUGGEST'})
UNWIND $ids AS id
MATCH (l:Lesson {tenant: $tenant, rb_id: id})-[s:SUGGESTED]-(o:Lesson)
WHERE s.state = 'OPEN' AND o.rb_id < id AND coalesce(s.found_time < w.started_at, true)
DELETE s
