// After rows were put into the index: takes the mark off the lessons that are still in the revision that was indexed; from
// now on they may be offered. One that is gone leaves a row to remove. One that has changed stays marked; if another process
// may have put its row before ours, it gets a new revision, which no mark that is cleared late can be meant for.
// params: $tenant, $rows [[rb_id, revision]], $renewed (a new revision; null: no other process moves rows), $ours (revisions that we put ourselves, behind these)
// returns: rows of properties (of those that have changed)
UNWIND $rows AS row
OPTIONAL MATCH (l:Lesson {tenant: $tenant, rb_id: row[0]})
USING INDEX SEEK l:Lesson(tenant, rb_id)
SET l.tenant = $tenant
WITH l, row, coalesce(l.revision <> row[1], false) AS changed
FOREACH (_ IN CASE WHEN l.revision = row[1] THEN [1] ELSE [] END | REMOVE l.to_index, l.hidden_until_indexed)
FOREACH (_ IN CASE WHEN changed THEN [1] ELSE [] END | SET l.to_index = true,
  l.revision = CASE WHEN l.revision IN $ours THEN l.revision ELSE coalesce($renewed, l.revision) END)
FOREACH (_ IN CASE WHEN l IS NULL THEN [1] ELSE [] END |
  MERGE (r:Removal {tenant: $tenant, collection: 'reasoningbank', key: toString(row[0])}) SET r.noted = randomUUID())
WITH l, changed WHERE changed
RETURN collect({properties: l {.*, created_at: toString(l.created_at), updated_at: toString(l.updated_at), last_used_at: toString(l.last_used_at),
  confidence: coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence)}}) AS rows
