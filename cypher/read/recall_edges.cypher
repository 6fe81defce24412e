// The edges along which recall walks on from several memories, both ways, to memories that pass the filter: lean, of texts only the beginning of each edge's sentence, on request.
// params: $tenant, $ids, $min_weight, $as_of, $shared (tags of the question), $limit (edges of one memory, strongest first), $sentence (characters of each edge's sentence that are returned) and the filter: $types, $conv_id, $tags, $text_contains, $since, $until, $overlap_start, $overlap_end
// returns: rows of memory, its revision, edges [[edge id, neighbour id, weight, whether the edge leads away, the neighbour's revision, the sentence, [tags of the question on the edge, and on the neighbour] or null where it has none]]
UNWIND $ids AS id
MATCH (s:Memory {tenant: $tenant, id: id})
CALL (s) {
  MATCH (s)-[r:RELATES]-(m:Memory)
  WHERE r.weight >= $min_weight AND r.weight > 0
  AND ($as_of IS NULL OR r.created_time <= $as_of)
  AND ($types IS NULL OR any(l IN labels(m) WHERE l IN $types))
  AND ($conv_id IS NULL OR m.conv_id = $conv_id)
  AND all(tag IN $tags WHERE tag IN m.tags)
  AND ($text_contains IS NULL OR toLower(m.text) CONTAINS $text_contains)
  AND ($since IS NULL OR m.ingestion_time >= $since)
  AND ($until IS NULL OR m.ingestion_time <= $until)
  AND ($overlap_start IS NULL OR (m:Event
    AND coalesce(m.end_date, m.start_date) >= $overlap_start
    AND coalesce(m.start_date, m.end_date) <= $overlap_end))
  WITH r, m ORDER BY r.weight DESC, r.id LIMIT $limit
  RETURN collect([r.id, m.id, r.weight, startNode(r) = s, m.revision, left(coalesce(r.text, ''), $sentence),
    CASE WHEN $shared <> [] THEN [size([tag IN $shared WHERE tag IN r.tags]), size([tag IN $shared WHERE tag IN m.tags])] END
  ]) AS edges
}
RETURN collect({memory: s.id, revision: s.revision, edges: edges}) AS rows
