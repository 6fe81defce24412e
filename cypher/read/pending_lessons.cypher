// The lessons that are marked as still to be indexed and that nobody is indexing just now. A node that somebody made by
// hand, without all that a lesson has, with something else in its place or with longer names than a row holds, stays marked and
// stops nobody: Milvus dies of such a row, or refuses all that come with it.
// params: $tenant, $limit, $under_way (revisions that are not ours to take), $older_than (only revisions below it are)
// returns: rows of properties
MATCH (l:Lesson {tenant: $tenant, to_index: true})
WHERE NOT l.revision IN $under_way
  AND l.revision < $older_than
  AND all(name IN ['key_lesson', 'context_to_prefer', 'namespace', 'scope', 'outcome', 'status'] WHERE l[name] IS :: STRING NOT NULL)
  AND all(name IN ['created_at', 'updated_at', 'last_used_at'] WHERE l[name] IS :: ZONED DATETIME)
  AND all(name IN ['tags', 'link_nodes'] WHERE l[name] IS :: LIST<STRING NOT NULL>)
  AND all(name IN ['revision', 'version'] WHERE l[name] IS :: INTEGER NOT NULL)
  AND all(name IN [l.namespace, l.scope, l.outcome, l.status] + l.tags + l.link_nodes WHERE size(name) <= 512)
  AND size(l.tags) <= 4096 AND size(l.link_nodes) <= 4096
WITH l LIMIT $limit
RETURN collect({properties: l {.*, created_at: toString(l.created_at), updated_at: toString(l.updated_at), last_used_at: toString(l.last_used_at),
  confidence: coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence)}}) AS rows
