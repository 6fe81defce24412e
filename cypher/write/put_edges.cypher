// Makes edges between memories that this transaction has locked.
// params: $tenant, $rows [{source, target, properties}], $now (when an edge was made that does not say so itself)
// returns: nothing
UNWIND $rows AS row
MATCH (s:Memory {tenant: $tenant, id: row.source})
CALL (row) { // a subquery, so that the two look-ups are not multiplied
  MATCH (t:Memory {tenant: $tenant, id: row.target})
  RETURN t
}
CREATE (s)-[r:RELATES {tenant: $tenant, created_time: $now}]->(t)
SET r += row.properties
