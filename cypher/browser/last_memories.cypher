// The last 50 memories and the sentences between them
MATCH (m:Memory {tenant: 'default'})
WITH m ORDER BY m.ingestion_time DESC, m.id DESC LIMIT 50
WITH collect(m) AS latest
UNWIND latest AS m
OPTIONAL MATCH (m)-[r:RELATES]->(other:Memory)
WHERE other IN latest
RETURN m, r, other
