// After rows were removed from the vector store: their notes are dropped, unless they were noted anew meanwhile. A lesson that came
// back while its row was removed may have lost its new one: it is marked, and gets a new revision if another process may have
// put that one. One that was back before kept its row, and needs nothing; if it is gone by now, its note stays.
// params: $tenant, $rows [{key (rb_ids as text), noted, back}], $renewed (a new revision; null: no other process moves rows)
// returns: rows of properties (of those that came back meanwhile)
UNWIND $rows AS row
OPTIONAL MATCH (l:Lesson {tenant: $tenant, rb_id: toInteger(row.key)})
SET l.tenant = $tenant
WITH row, l, l IS NOT NULL AND NOT row.back AS lost
FOREACH (_ IN CASE WHEN lost THEN [1] ELSE [] END | SET l.to_index = true, l.revision = coalesce($renewed, l.revision))
WITH row, l, lost
OPTIONAL MATCH (r:Removal {tenant: $tenant, collection: 'reasoningbank', key: row.key})
WHERE coalesce(r.noted, '') = coalesce(row.noted, '') AND (l IS NOT NULL OR NOT row.back)
DELETE r
WITH l, lost WHERE lost AND l.rb_id IS NOT NULL // not deleted while its lock was waited for
RETURN collect({properties: l {.*, created_at: toString(l.created_at), updated_at: toString(l.updated_at), last_used_at: toString(l.last_used_at),
  confidence: coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence)}}) AS rows
