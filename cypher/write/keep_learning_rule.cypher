// Notes the rule that the stored confidences were computed by.
// params: $tenant, $name
// returns: nothing
MERGE (n:Learning {tenant: $tenant})
SET n.name = $name
