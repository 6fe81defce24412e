// Deletes a session; whoever is at it finds that it is gone.
// params: $tenant, $id
// returns: id; no row: there is no such session
MATCH (s:Session {tenant: $tenant, id: $id})
DETACH DELETE s
RETURN $id AS id
