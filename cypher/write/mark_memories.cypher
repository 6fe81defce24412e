// Marks memories as still to be indexed. One that was made by hand gets what the index needs of it.
// params: $tenant, $rows [[id, embedding_id]], $revision (of those that have none)
// returns: marked
UNWIND $rows AS row
MATCH (m:Memory {tenant: $tenant, id: row[0]})
SET m.to_index = true, m.embedding_id = row[1], m.version = coalesce(m.version, 1),
  m.revision = coalesce(m.revision, $revision)
RETURN count(m) AS marked
