// Writes the changed properties of lessons that this transaction has locked; a null removes a property.
// params: $tenant, $rows [{rb_id, changes}]
// returns: nothing
UNWIND $rows AS row
MATCH (l:Lesson {tenant: $tenant, rb_id: row.rb_id})
SET l += row.changes
