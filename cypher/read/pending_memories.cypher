// The memories that are marked as still to be indexed and that nobody is indexing just now. A node that somebody made by
// hand, without all that a memory has, with something else in its place or with longer names than a row holds, stays marked and
// stops nobody: Milvus dies of such a row, or refuses all that come with it.
// params: $tenant, $limit, $under_way (revisions that are not ours to take), $older_than (only revisions below it are), $types (those there are)
// returns: rows of type, properties
MATCH (m:Memory {tenant: $tenant, to_index: true})
WHERE NOT m.revision IN $under_way
  AND m.revision < $older_than
  AND [l IN labels(m) WHERE l <> 'Memory'][0] IN $types
  AND all(name IN ['id', 'conv_id', 'text', 'embedding_id'] WHERE m[name] IS :: STRING NOT NULL)
  AND all(name IN ['ingestion_time', 'update_time'] WHERE m[name] IS :: ZONED DATETIME NOT NULL)
  AND all(name IN ['revision', 'version'] WHERE m[name] IS :: INTEGER NOT NULL) AND m.tags IS :: LIST<STRING NOT NULL>
  AND all(name IN [m.id, m.conv_id, m.embedding_id] + m.tags WHERE size(name) <= 512) AND size(m.tags) <= 4096
WITH m LIMIT $limit
RETURN collect({type: [l IN labels(m) WHERE l <> 'Memory'][0], properties: m {.*, ingestion_time: toString(m.ingestion_time), update_time: toString(m.update_time)}}) AS rows
