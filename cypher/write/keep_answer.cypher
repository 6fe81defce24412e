// Keeps what was answered under an idempotency key.
// params: $tenant, $key, $answer
// returns: nothing
MATCH (k:IdempotencyKey {tenant: $tenant, key: $key})
SET k.answer = $answer
