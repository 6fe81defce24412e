// Which active lessons were learnt from a memory that these lessons were learnt from too.
// params: $tenant, $ids, $only_later, $namespace, $limit
// returns: rows of rb_id, others (ids, the later ones first; $only_later: no earlier ones, but for those outside $namespace)
UNWIND $ids AS id
MATCH (l:Lesson {tenant: $tenant, rb_id: id})
USING INDEX SEEK l:Lesson(tenant, rb_id)
CALL (l) {
  MATCH (l)-[:LEARNED_FROM]->(:Memory)<-[:LEARNED_FROM]-(o:Lesson)
  WHERE o.status = 'ACTIVE' AND o.rb_id <> l.rb_id AND (o.rb_id > l.rb_id OR NOT $only_later OR o.namespace <> $namespace)
  WITH DISTINCT o.rb_id AS other, o.rb_id < l.rb_id AS earlier ORDER BY earlier, other LIMIT $limit
  RETURN collect(other) AS others
}
RETURN collect({rb_id: l.rb_id, others: others}) AS rows
