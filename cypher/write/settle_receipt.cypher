// Notes what came of a recall that this transaction has locked, and which lessons were used.
// params: $tenant, $id, $succeeded, $used
// returns: nothing
MATCH (r:Receipt {tenant: $tenant, id: $id})
SET r.succeeded = $succeeded, r.used = $used
