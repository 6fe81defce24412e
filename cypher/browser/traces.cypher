// Where the newest lesson comes from: every way back to a DataSource, a UserRequest or an Event, strongest first
// To trace another one, replace the next two lines by: MATCH (l:Lesson {tenant: 'default', rb_id: 7001})
MATCH (l:Lesson {tenant: 'default'})
WITH l ORDER BY l.rb_id DESC LIMIT 1
MATCH (l)-[learnt:LEARNED_FROM]->(source:Memory)
MATCH way = (source)-[:RELATES*0..4]-(origin:Memory)
WHERE (origin:DataSource OR origin:UserRequest OR origin:Event)
  AND all(r IN relationships(way) WHERE r.weight > 0)
  AND all(m IN nodes(way) WHERE single(other IN nodes(way) WHERE other = m))
RETURN l, learnt, way, reduce(product = 1.0, r IN relationships(way) | product * r.weight) AS strength, origin.id AS origin
ORDER BY strength DESC, length(way), origin LIMIT 1000
