// After rows were removed from the vector store: a lesson that has come back meanwhile is marked, so that it is indexed again.
// params: $tenant, $keys (rb_ids as text)
// returns: nothing
UNWIND $keys AS key
OPTIONAL MATCH (l:Lesson {tenant: $tenant, rb_id: toInteger(key)})
SET l.to_index = true
WITH key
MATCH (r:Removal {tenant: $tenant, collection: 'reasoningbank', key: key})
DELETE r
