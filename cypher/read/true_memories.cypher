// What memories are that a search has hit: a hit of another revision or version, or of no memory, is not true. Of those that
// are likely to be shown the whole of it, so that nobody need ask twice.
// params: $tenant, $ids, $shown (some of them) and the filter: $types, $conv_id, $tags, $text_contains, $since, $until, $overlap_start, $overlap_end
// returns: rows of [id, revision, version, passes (the filter), type and properties (null where they were not asked for)]
UNWIND $ids AS id
MATCH (m:Memory {tenant: $tenant, id: id})
WITH m, id IN $shown AS shown, (true
  AND ($types IS NULL OR any(l IN labels(m) WHERE l IN $types))
  AND ($conv_id IS NULL OR m.conv_id = $conv_id)
  AND all(tag IN $tags WHERE tag IN m.tags)
  AND ($text_contains IS NULL OR toLower(m.text) CONTAINS $text_contains)
  AND ($since IS NULL OR m.ingestion_time >= $since)
  AND ($until IS NULL OR m.ingestion_time <= $until)
  AND ($overlap_start IS NULL OR (m:Event
    AND coalesce(m.end_date, m.start_date) >= $overlap_start
    AND coalesce(m.start_date, m.end_date) <= $overlap_end))) AS passes
WITH shown, [m.id, m.revision, m.version, passes,
  CASE WHEN shown THEN [l IN labels(m) WHERE l <> 'Memory'][0] END,
  CASE WHEN shown THEN m {.*, ingestion_time: toString(m.ingestion_time), update_time: toString(m.update_time)} END] AS row
WHERE row[0] IS NOT NULL AND (NOT shown OR row[4] IS NOT NULL AND row[5].id IS NOT NULL) // not deleted while it was read
RETURN collect(row) AS rows
