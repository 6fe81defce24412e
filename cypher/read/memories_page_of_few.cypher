// A page of memories, newest first, where few have what is asked for: certain tags, or a type; the cursor is the last one's time and id.
// params: $tenant, $tagged (Lucene queries for tags: one or none), $typed (types: some or none), $few (so many hits in the whole database are no longer few), $before_time, $before_id, $limit and the filter: $types, $conv_id, $tags, $text_contains, $since, $until, $overlap_start, $overlap_end
// returns: rows of type, properties; one row of many, where there are not few
CALL () {
  UNWIND $tagged AS query
  CALL db.index.fulltext.awaitEventuallyConsistentIndexRefresh()
  // Twice as many: those that are deleted meanwhile are left out of the hits without a word.
  CALL db.index.fulltext.queryNodes('memory_tags', query, {limit: 2 * $few}) YIELD node AS m
  RETURN m
  UNION ALL UNWIND [type IN $typed WHERE type = 'UserRequest'] AS type MATCH (m:UserRequest) RETURN m LIMIT $few
  UNION ALL UNWIND [type IN $typed WHERE type = 'UserPreference'] AS type MATCH (m:UserPreference) RETURN m LIMIT $few
  UNION ALL UNWIND [type IN $typed WHERE type = 'AgentAnswer'] AS type MATCH (m:AgentAnswer) RETURN m LIMIT $few
  UNION ALL UNWIND [type IN $typed WHERE type = 'AgentAction'] AS type MATCH (m:AgentAction) RETURN m LIMIT $few
  UNION ALL UNWIND [type IN $typed WHERE type = 'Event'] AS type MATCH (m:Event) RETURN m LIMIT $few
  UNION ALL UNWIND [type IN $typed WHERE type = 'DataSource'] AS type MATCH (m:DataSource) RETURN m LIMIT $few
}
WITH collect(m) AS found
CALL (found) {
  UNWIND CASE WHEN size(found) < $few THEN found ELSE [] END AS m
  WITH m
  WHERE m.tenant = $tenant AND m.ingestion_time <= $before_time
  AND (m.ingestion_time < $before_time OR m.id < $before_id)
  AND size(labels(m)) > 1 AND m:Memory AND m.id IS NOT NULL
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
  RETURN collect({type: [l IN labels(m) WHERE l <> 'Memory'][0], properties: m {.*, ingestion_time: toString(m.ingestion_time), update_time: toString(m.update_time)}}) AS page
}
RETURN CASE WHEN size(found) < $few THEN page ELSE [{many: true}] END AS rows
