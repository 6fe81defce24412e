// The revisions of memories that a search has hit: a hit in another revision, or of no memory, is not true. Of those that
// are likely to be shown the whole of it, so that nobody need ask twice.
// All else that a filter asks the index has answered: a row in the memory's revision has the memory's values.
// params: $tenant, $ids, $shown (some of them), $text_contains (in lower case; null: anything)
// returns: rows of [id, revision, passes (its text contains that), type and properties (null where they were not asked for)]
UNWIND $ids AS id
MATCH (m:Memory {tenant: $tenant, id: id})
WITH m, id IN $shown AS shown
RETURN collect([m.id, m.revision, $text_contains IS NULL OR toLower(m.text) CONTAINS $text_contains,
  CASE WHEN shown THEN [l IN labels(m) WHERE l <> 'Memory'][0] END,
  CASE WHEN shown THEN m {.*, ingestion_time: toString(m.ingestion_time), update_time: toString(m.update_time)} END]) AS rows
