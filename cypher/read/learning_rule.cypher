// The rule that the stored confidences were computed by.
// params: $tenant
// returns: name
MATCH (n:Learning {tenant: $tenant})
RETURN n.name AS name
