// Waits until no other worker stores lessons of a namespace, and keeps the others out until the commit.
// params: $tenant, $namespace
// returns: nothing
MERGE (d:Distilling {tenant: $tenant, namespace: $namespace})
SET d.tenant = $tenant
