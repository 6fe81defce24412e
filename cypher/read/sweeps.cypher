// How far the sweeps are, and how they ended.
// params: $tenant
// returns: rows of kind, state, examined, found, total, started_at, heard_at, finished_at, error
MATCH (s:Sweep)
WHERE s.tenant = $tenant AND s.kind > ''
RETURN collect(s {.kind, .state, .examined, .found, .total, .error, started_at: toString(s.started_at), heard_at: toString(s.heard_at),
  finished_at: toString(s.finished_at)}) AS rows
