// Keeps receipts of recalls: which lessons were offered, and which were withheld.
// params: $tenant, $rows [{id, created_time, namespace, offered, fits, withheld}]
// returns: nothing
UNWIND $rows AS row
MERGE (r:Receipt {tenant: $tenant, id: row.id})
SET r += row
