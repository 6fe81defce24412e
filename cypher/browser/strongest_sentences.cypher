// The 50 strongest sentences of the last 1,000 memories, to read as a table
MATCH (m:Memory {tenant: 'default'})
WITH m ORDER BY m.ingestion_time DESC, m.id DESC LIMIT 1000
MATCH (m)-[r:RELATES]->(other:Memory)
RETURN m.text AS `from`, r.text AS sentence, other.text AS `to`, r.weight AS weight, r.tags AS tags, r.id AS edge
ORDER BY weight DESC, edge LIMIT 50
