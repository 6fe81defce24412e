// How much there is of each type
CALL () {
  MATCH (m:Memory {tenant: 'default'})
  RETURN [x IN labels(m) WHERE x <> 'Memory'][0] AS what, count(*) AS how_many
  UNION ALL
  MATCH (l:Lesson {tenant: 'default'})
  RETURN 'Lesson' AS what, count(*) AS how_many
  UNION ALL
  MATCH (:Memory {tenant: 'default'})-[r:RELATES]->(:Memory)
  RETURN 'sentences (RELATES)' AS what, count(r) AS how_many
}
RETURN what, how_many
ORDER BY how_many DESC, what
