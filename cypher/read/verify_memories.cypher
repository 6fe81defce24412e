// Which hits of the vector store are true: the memory exists, in the revision that was indexed, and passes the filter.
// params: $tenant, $ids and the filter: $types, $conv_id, $tags, $text_contains, $since, $until, $overlap_start, $overlap_end
// returns: type, properties, passes
UNWIND $ids AS id
MATCH (m:Memory {tenant: $tenant, id: id})
RETURN [l IN labels(m) WHERE l <> 'Memory'][0] AS type, properties(m) AS properties,
  (m.tenant = $tenant
  AND ($types IS NULL OR any(l IN labels(m) WHERE l IN $types))
  AND ($conv_id IS NULL OR m.conv_id = $conv_id)
  AND all(tag IN $tags WHERE tag IN m.tags)
  AND ($text_contains IS NULL OR toLower(m.text) CONTAINS $text_contains)
  AND ($since IS NULL OR m.ingestion_time >= $since)
  AND ($until IS NULL OR m.ingestion_time <= $until)
  AND ($overlap_start IS NULL OR (m:Event
    AND coalesce(m.end_date, m.start_date) >= $overlap_start
    AND coalesce(m.start_date, m.end_date) <= $overlap_end))) AS passes
