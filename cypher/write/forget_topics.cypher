// Deletes the machine-made edges of memories whose text or tags have changed: what they said may no longer be true.
// params: $tenant, $ids
// returns: nothing
UNWIND $ids AS id
MATCH (:Memory {tenant: $tenant, id: id})-[r:RELATES]-(:Memory)
WHERE r.machine_made
DELETE r
