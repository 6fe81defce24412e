// What the graph holds of the given lessons that their index rows must say too, and which rows are to be removed anyway.
// params: $tenant, $keys
// returns: rows of key, values (what a true row says, one or the other: where the graph's own links disagree, that is counted there; null: there is no such lesson), name (null: a lesson names no row), marked, removal
UNWIND $keys AS key
OPTIONAL MATCH (l:Lesson {tenant: $tenant, rb_id: key})
OPTIONAL MATCH (r:Removal {tenant: $tenant, collection: 'reasoningbank', key: toString(key)})
WITH key, l, r, COLLECT { MATCH (l)-[:LEARNED_FROM]->(m:Memory) RETURN m.id } AS linked
RETURN collect({key: key, marked: coalesce(l.to_index, false), removal: r IS NOT NULL, name: null,
  values: CASE WHEN l IS NOT NULL THEN
    [links IN [coalesce(l.link_nodes, []), linked] | {revision: l.revision, version: l.version, link_nodes: links}] END}) AS rows
