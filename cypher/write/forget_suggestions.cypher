// Forgets what was suggested of these lessons and later ones, is not settled, and was not found again.
// params: $tenant, $ids, $found_before
// returns: nothing
UNWIND $ids AS id
MATCH (l:Lesson {tenant: $tenant, rb_id: id})-[s:SUGGESTED]-(o:Lesson)
WHERE s.state = 'OPEN' AND o.rb_id > id AND coalesce(s.found_time < $found_before, true)
DELETE s
