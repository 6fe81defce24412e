// Marks lessons as still to be indexed. One that was made by hand gets what the index needs of it.
// params: $tenant, $rows [[rb_id, ...]], $revision (of those that have none)
// returns: marked
UNWIND $rows AS row
MATCH (l:Lesson {tenant: $tenant, rb_id: row[0]})
SET l.to_index = true, l.version = coalesce(l.version, 1), l.revision = coalesce(l.revision, $revision),
  l.link_nodes = coalesce(l.link_nodes, [])
RETURN count(l) AS marked
