// Where a lesson was learnt: the 10 newest lessons, their sources, and the memories next to these
MATCH (l:Lesson {tenant: 'default'})
WITH l ORDER BY l.rb_id DESC LIMIT 10
OPTIONAL MATCH (l)-[learnt:LEARNED_FROM]->(source:Memory)
OPTIONAL MATCH (source)-[r:RELATES]-(near:Memory)
RETURN l, learnt, source, r, near
LIMIT 300
