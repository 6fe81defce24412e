// Makes a session, joined to the memories that this transaction has made for it, and puts it into the queue.
// params: $tenant, $id, $properties, $memories (ids, in the order of the work)
// returns: nothing
CREATE (s:Session {tenant: $tenant, id: $id})
SET s += $properties, s.created_at = datetime(), s.updated_at = datetime(), s.due_at = datetime()
WITH s
UNWIND range(0, size($memories) - 1) AS place
MATCH (m:Memory {tenant: $tenant, id: $memories[place]})
CREATE (s)-[:RECORDED {place: place}]->(m)
