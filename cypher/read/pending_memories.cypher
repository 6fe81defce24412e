// The memories that are marked as still to be indexed and that nobody is indexing just now. A node that somebody made by
// hand, without all that a memory has, stays marked and stops nobody.
// params: $tenant, $limit, $under_way (revisions that are not ours to take), $older_than (only revisions below it are)
// returns: rows of type, properties
MATCH (m:Memory {tenant: $tenant, to_index: true})
WHERE NOT m.revision IN $under_way
  AND m.revision < $older_than
  AND size(labels(m)) > 1
  AND all(name IN ['conv_id', 'text', 'ingestion_time', 'update_time', 'embedding_id', 'version'] WHERE m[name] IS NOT NULL)
WITH m LIMIT $limit
RETURN collect({type: [l IN labels(m) WHERE l <> 'Memory'][0], properties: m {.*, ingestion_time: toString(m.ingestion_time), update_time: toString(m.update_time)}}) AS rows
