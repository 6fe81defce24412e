// Makes edges between memories that this transaction has locked. One that somebody writes takes the place of what nobody wrote.
// params: $tenant, $rows [{source, target, properties}], $now (when an edge was made that does not say so itself)
// returns: nothing
UNWIND $rows AS row
MATCH (s:Memory {tenant: $tenant, id: row.source})
CALL (row) { // a subquery, so that the two look-ups are not multiplied
  MATCH (t:Memory {tenant: $tenant, id: row.target})
  RETURN t
}
CALL (s, t, row) {
  MATCH (s)-[made:RELATES]-(t)
  WHERE made.machine_made AND NOT coalesce(row.properties.machine_made, false)
  DELETE made
}
CREATE (s)-[r:RELATES {tenant: $tenant, created_time: $now}]->(t)
SET r += row.properties
