// The schema files that were applied to this database, in order.
// params: none (the schema is the whole database's, not a tenant's)
// returns: number, name, checksum
MATCH (s:CairnSchema)
RETURN s.number AS number, s.name AS name, s.checksum AS checksum
ORDER BY number
