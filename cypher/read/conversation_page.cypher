// A page of one conversation's memories, newest first; the cursor is the last one's time and id.
// params: $tenant, $before_time, $before_id, $limit and the filter: $types, $conv_id, $tags, $text_contains, $since, $until, $overlap_start, $overlap_end
// returns: rows of type, properties
MATCH (m:Memory {tenant: $tenant, conv_id: $conv_id})
WHERE m.ingestion_time <= $before_time
  AND (m.ingestion_time < $before_time OR m.id < $before_id)
  AND size(labels(m)) > 1 AND m.id IS NOT NULL
  AND ($types IS NULL OR any(l IN labels(m) WHERE l IN $types))
  AND ($conv_id IS NULL OR m.conv_id = $conv_id)
  AND all(tag IN $tags WHERE tag IN m.tags)
  AND ($text_contains IS NULL OR toLower(m.text) CONTAINS $text_contains)
  AND ($since IS NULL OR m.ingestion_time >= $since)
  AND ($until IS NULL OR m.ingestion_time <= $until)
  AND ($overlap_start IS NULL OR (m:Event
    AND coalesce(m.end_date, m.start_date) >= $overlap_start
    AND coalesce(m.start_date, m.end_date) <= $overlap_end))
WITH m ORDER BY m.ingestion_time DESC, m.id DESC LIMIT $limit
RETURN collect({type: [l IN labels(m) WHERE l <> 'Memory'][0], properties: m {.*, ingestion_time: toString(m.ingestion_time), update_time: toString(m.update_time)}}) AS rows
