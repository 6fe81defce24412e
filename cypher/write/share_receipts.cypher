// The recalls that count for the parts of merged lessons count for these too, each once. All of them are locked.
// params: $tenant, $rows [{merged, parts}]
// returns: rows of merged, shared (of each recall that counts for several parts [their arms, succeeded])
UNWIND $rows AS row
MATCH (l:Lesson {tenant: $tenant, rb_id: row.merged})
CALL (l, row) {
  UNWIND row.parts AS part
  MATCH (r:Receipt)-[counts:COUNTED]->(:Lesson {tenant: $tenant, rb_id: part})
  WITH l, r, collect(counts.arm) AS arms
  MERGE (r)-[own:COUNTED]->(l)
  SET own.copied = true, own.arm = reduce(first = arms[0], arm IN arms | CASE WHEN arm < first THEN arm ELSE first END)
  WITH r, arms WHERE size(arms) > 1
  RETURN collect([arms, r.succeeded]) AS shared
}
RETURN collect({merged: l.rb_id, shared: shared}) AS rows
