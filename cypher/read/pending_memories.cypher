// The memories that are marked as still to be indexed and that nobody is indexing just now.
// params: $tenant, $limit, $under_way (revisions that are not ours to take), $all, $given_up, $older_than (unless $all: only these revisions, and older ones)
// returns: rows of type, properties
MATCH (m:Memory {tenant: $tenant, to_index: true})
WHERE NOT m.revision IN $under_way
  AND ($all OR m.revision IN $given_up OR m.revision < $older_than)
WITH m LIMIT $limit
RETURN collect({type: [l IN labels(m) WHERE l <> 'Memory'][0], properties: m {.*, ingestion_time: toString(m.ingestion_time), update_time: toString(m.update_time)}}) AS rows
