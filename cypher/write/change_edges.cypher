// Changes edges: what they say, how strong they are, their tags.
// params: $tenant, $rows [{id, changes}]
// returns: nothing
UNWIND $rows AS row
MATCH (:Memory)-[r:RELATES {tenant: $tenant, id: row.id}]->(:Memory)
SET r += row.changes
