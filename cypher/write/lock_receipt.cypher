// Locks the receipt of a recall.
// params: $tenant, $id
// returns: namespace, offered, fits, withheld, succeeded (null: nobody has told yet what came of it)
MATCH (r:Receipt {tenant: $tenant, id: $id})
SET r.tenant = $tenant
WITH r WHERE r.id IS NOT NULL // not removed while its lock was waited for
RETURN r.namespace AS namespace, r.offered AS offered, r.fits AS fits, r.withheld AS withheld, r.succeeded AS succeeded
