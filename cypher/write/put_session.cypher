// Makes a session, joined to the memories that this transaction has made for it, and puts it into the queue.
// params: $tenant, $id, $properties, $memories (ids, in the order of the work), $asked_in (one word, by which the request is found)
// returns: rows of properties, memories, lessons (none yet)
CREATE (s:Session {tenant: $tenant, id: $id})
SET s += $properties, s.created_at = datetime(), s.updated_at = datetime(), s.due_at = datetime()
WITH s
CALL (s) {
  UNWIND range(0, size($memories) - 1) AS place
  MATCH (m:Memory {tenant: $tenant, id: $memories[place]})
  CREATE (s)-[:RECORDED {place: place}]->(m)
  FOREACH (_ IN CASE place WHEN 0 THEN [1] ELSE [] END | SET m.asked_in = $asked_in)
}
RETURN collect({properties: s {.*, created_at: toString(s.created_at), updated_at: toString(s.updated_at), due_at: toString(s.due_at)}, memories: $memories, lessons: []}) AS rows
