// Notes that a schema file was applied.
// params: $number, $name, $checksum (the schema is the whole database's, not a tenant's)
// returns: nothing
MERGE (s:CairnSchema {number: $number})
ON CREATE SET s.name = $name, s.checksum = $checksum, s.applied_time = datetime()
