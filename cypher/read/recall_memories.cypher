// What recall asks of memories that a search has hit: revision and version, whether it passes the filter, and the text unless its words are at hand.
// params: $tenant, $wanted [[id, the revision whose words are at hand or null]], $shared (tags of the question) and the filter: $types, $conv_id, $tags, $text_contains, $since, $until, $overlap_start, $overlap_end
// returns: rows [id, revision, version, passes, how many tags of the question it carries, text]
UNWIND $wanted AS one
MATCH (m:Memory {tenant: $tenant, id: one[0]})
WITH m, one, (true
  AND ($types IS NULL OR any(l IN labels(m) WHERE l IN $types))
  AND ($conv_id IS NULL OR m.conv_id = $conv_id)
  AND all(tag IN $tags WHERE tag IN m.tags)
  AND ($text_contains IS NULL OR toLower(m.text) CONTAINS $text_contains)
  AND ($since IS NULL OR m.ingestion_time >= $since)
  AND ($until IS NULL OR m.ingestion_time <= $until)
  AND ($overlap_start IS NULL OR (m:Event
    AND coalesce(m.end_date, m.start_date) >= $overlap_start
    AND coalesce(m.start_date, m.end_date) <= $overlap_end))) AS passes
WITH one, [m.id, m.revision, m.version, passes, size([tag IN $shared WHERE tag IN m.tags]),
  CASE WHEN NOT passes OR m.revision = one[1] THEN null ELSE m.text END] AS row
WHERE row[0] IS NOT NULL AND row[1] IS NOT NULL AND (row[5] IS NOT NULL OR NOT row[3] OR row[1] = one[1]) // not deleted while it was read
RETURN collect(row) AS rows
