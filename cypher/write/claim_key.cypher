// Takes an idempotency key, or finds what was answered under it; whoever comes at the same moment waits here.
// params: $tenant, $key, $body (a digest of the call)
// returns: body, answer (null: the key is new)
MERGE (k:IdempotencyKey {tenant: $tenant, key: $key})
ON CREATE SET k.body = $body, k.created_time = datetime()
SET k.tenant = $tenant
RETURN k.body AS body, k.answer AS answer
