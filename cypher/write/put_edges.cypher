// Makes edges between memories that this transaction has locked.
// params: $tenant, $rows [{source, target, properties}]
// returns: nothing
UNWIND $rows AS row
MATCH (s:Memory {tenant: $tenant, id: row.source})
WITH row, s
MATCH (t:Memory {tenant: $tenant, id: row.target})
CREATE (s)-[r:RELATES]->(t)
SET r = row.properties
