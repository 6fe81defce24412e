// Notes how far a sweep is, or how it ended. Lessons that came after it began are looked at too, and not counted.
// params: $tenant, $kind, $state, $examined, $found, $now, $finished_at, $error
// returns: nothing
MATCH (s:Sweep {tenant: $tenant, kind: $kind})
SET s.state = $state, s.examined = CASE WHEN $examined < s.total THEN $examined ELSE s.total END, s.found = $found,
  s.heard_at = $now, s.finished_at = $finished_at, s.error = $error
