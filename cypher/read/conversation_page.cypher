// A page of one conversation's memories, newest first; the cursor is the last one's time and id.
// params: $tenant, $before_time, $before_id, $limit and the filter: $types, $conv_id, $tags, $text_contains, $since, $until, $overlap_start, $overlap_end
// returns: rows of type, properties
MATCH (m:Memory)
USING INDEX SEEK m:Memory(tenant, conv_id, ingestion_time, id)
WHERE m.tenant = $tenant AND m.conv_id = $conv_id AND m.ingestion_time <= $before_time AND m.ingestion_time >= coalesce($since, datetime('0001-01-01T00:00Z')) AND m.id IS NOT NULL
WITH m ORDER BY m.tenant DESC, m.conv_id DESC, m.ingestion_time DESC, m.id DESC // as the index has them: nothing is sorted, the limit ends the search
WHERE (m.ingestion_time < $before_time OR m.id < $before_id)
  AND size(labels(m)) > 1
  AND ($types IS NULL OR any(l IN labels(m) WHERE l IN $types))
  AND ($conv_id IS NULL OR m.conv_id = $conv_id)
  AND all(tag IN $tags WHERE tag IN m.tags)
  AND ($text_contains IS NULL OR toLower(m.text) CONTAINS $text_contains)
  AND ($since IS NULL OR m.ingestion_time >= $since)
  AND ($until IS NULL OR m.ingestion_time <= $until)
  AND ($overlap_start IS NULL OR (m:Event
    AND coalesce(m.end_date, m.start_date) >= $overlap_start
    AND coalesce(m.start_date, m.end_date) <= $overlap_end))
WITH m LIMIT $limit
RETURN collect({type: [l IN labels(m) WHERE l <> 'Memory'][0], properties: m {.*, ingestion_time: toString(m.ingestion_time), update_time: toString(m.update_time)}}) AS rows
