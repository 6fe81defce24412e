// Writes the changed properties of memories that this transaction has locked; a null removes a property.
// params: $tenant, $rows [{id, type, changes}]
// returns: nothing
UNWIND $rows AS row
MATCH (m:Memory {tenant: $tenant, id: row.id})
SET m:$(row.type), m += row.changes
