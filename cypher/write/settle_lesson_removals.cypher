// After rows were removed from the vector store: a lesson that has come back is marked, so that it is indexed again. One whose row was
// left, because its lesson was back, and that is gone again by now, is still to be removed.
// params: $tenant, $keys (rb_ids as text), $removed (those of them whose rows were removed)
// returns: nothing
UNWIND $keys AS key
OPTIONAL MATCH (l:Lesson {tenant: $tenant, rb_id: toInteger(key)})
SET l.to_index = true
WITH key, l WHERE l IS NOT NULL OR key IN $removed
MATCH (r:Removal {tenant: $tenant, collection: 'reasoningbank', key: key})
DELETE r
