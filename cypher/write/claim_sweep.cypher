// Begins a sweep, unless it runs already: one that has not been heard of for a while does not.
// params: $tenant, $kind, $now, $heard_since, $due_before
// returns: claimed; $due_before: only if it did not begin after that moment (null: in any case)
MERGE (s:Sweep {tenant: $tenant, kind: $kind})
SET s.tenant = $tenant
WITH s, (s.state IS NULL OR s.state <> 'RUNNING' OR s.heard_at < $heard_since)
  AND ($due_before IS NULL OR s.started_at IS NULL OR s.started_at < $due_before) AS claimed
FOREACH (_ IN CASE WHEN claimed THEN [1] ELSE [] END |
  SET s.state = 'RUNNING', s.started_at = $now, s.heard_at = $now, s.finished_at = null, s.examined = 0, s.found = 0,
    s.total = COUNT { MATCH (l:Lesson {tenant: $tenant}) WHERE l.rb_id IS NOT NULL }, s.error = null)
RETURN claimed
