// One conversation: the one that was written to last
// To see another one, replace the next two lines by: WITH 'its conv_id' AS conv_id
MATCH (newest:Memory {tenant: 'default'})
WITH newest.conv_id AS conv_id ORDER BY newest.ingestion_time DESC, newest.id DESC LIMIT 1
MATCH (m:Memory {tenant: 'default', conv_id: conv_id})
WHERE m.ingestion_time IS NOT NULL AND m.id IS NOT NULL // as every memory has; so Neo4j takes the index of conversations
WITH m ORDER BY m.ingestion_time, m.id LIMIT 200
WITH collect(m) AS spoken
UNWIND spoken AS m
OPTIONAL MATCH (m)-[r:RELATES]->(other:Memory)
WHERE other IN spoken
RETURN m, r, other
