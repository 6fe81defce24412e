// Marks lessons as still to be indexed.
// params: $tenant, $keys
// returns: marked
UNWIND $keys AS key
MATCH (l:Lesson {tenant: $tenant, rb_id: key})
SET l.to_index = true
RETURN count(l) AS marked
