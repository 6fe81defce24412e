// Marks memories as still to be indexed.
// params: $tenant, $keys
// returns: marked
UNWIND $keys AS key
MATCH (m:Memory {tenant: $tenant, id: key})
SET m.to_index = true
RETURN count(m) AS marked
