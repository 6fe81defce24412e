// Memories by the words of their texts, for several questions at once: what is left of a search while Milvus is away.
// params: $tenant, $questions (Lucene queries), $limit (hits of one question) and the filter: $types, $conv_id, $tags, $text_contains, $since, $until, $overlap_start, $overlap_end
// returns: rows of hits [[id, revision, version, score]], best first, in the order of the questions
CALL db.index.fulltext.awaitEventuallyConsistentIndexRefresh()
UNWIND range(0, size($questions) - 1) AS place
CALL (place) {
  CALL db.index.fulltext.queryNodes('memory_words', $questions[place]) YIELD node AS m, score
  WHERE m.tenant = $tenant
  AND ($types IS NULL OR any(l IN labels(m) WHERE l IN $types))
  AND ($conv_id IS NULL OR m.conv_id = $conv_id)
  AND all(tag IN $tags WHERE tag IN m.tags)
  AND ($text_contains IS NULL OR toLower(m.text) CONTAINS $text_contains)
  AND ($since IS NULL OR m.ingestion_time >= $since)
  AND ($until IS NULL OR m.ingestion_time <= $until)
  AND ($overlap_start IS NULL OR (m:Event
    AND coalesce(m.end_date, m.start_date) >= $overlap_start
    AND coalesce(m.start_date, m.end_date) <= $overlap_end))
  WITH m, score ORDER BY score DESC, m.id LIMIT $limit
  RETURN collect([m.id, m.revision, m.version, score]) AS hits
}
WITH place, hits ORDER BY place
RETURN collect({hits: hits}) AS rows
