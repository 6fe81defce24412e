// The last five sessions: the path of the work from request to answer, and the lessons it taught
MATCH (s:Session {tenant: 'default'})
WITH s ORDER BY s.id DESC LIMIT 5
MATCH (s)-[recorded:RECORDED]->(m:Memory)
OPTIONAL MATCH (m)-[r:RELATES]->(next:Memory)
WHERE (s)-[:RECORDED]->(next)
OPTIONAL MATCH (s)-[taught:TAUGHT]->(l:Lesson)
RETURN s, recorded, m, r, next, taught, l
LIMIT 300
