// The lessons that are marked as still to be indexed and that nobody is indexing just now.
// params: $tenant, $limit, $under_way (revisions that are not ours to take), $all, $given_up, $older_than (unless $all: only these revisions, and older ones)
// returns: rows of properties
MATCH (l:Lesson {tenant: $tenant, to_index: true})
WHERE NOT l.revision IN $under_way
  AND ($all OR l.revision IN $given_up OR l.revision < $older_than)
WITH l LIMIT $limit
RETURN collect({properties: l {.*, created_at: toString(l.created_at), updated_at: toString(l.updated_at), last_used_at: toString(l.last_used_at),
  confidence: coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence)}}) AS rows
