// The revisions that the graph holds of the given lessons, and which are to be removed from the index anyway.
// params: $tenant, $keys
// returns: rows of key, revision (null: there is no such lesson), marked, removal
UNWIND $keys AS key
OPTIONAL MATCH (l:Lesson {tenant: $tenant, rb_id: key})
OPTIONAL MATCH (r:Removal {tenant: $tenant, collection: 'reasoningbank', key: toString(key)})
RETURN collect({key: key, revision: l.revision, marked: coalesce(l.to_index, false), removal: r IS NOT NULL}) AS rows
