// Notes what came of a recall that this transaction has locked, which lessons were used, and for which lessons it counts.
// params: $tenant, $id, $succeeded, $used, $counted [[rb_id, arm, copied: a part of the lesson was chosen, not the lesson]]
// returns: nothing
MATCH (r:Receipt {tenant: $tenant, id: $id})
SET r.succeeded = $succeeded, r.used = $used
WITH r
UNWIND $counted AS row
MATCH (l:Lesson {tenant: $tenant, rb_id: row[0]})
MERGE (r)-[counts:COUNTED]->(l)
SET counts.arm = row[1], counts.copied = row[2]
