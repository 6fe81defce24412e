// Which memories have certain words or tags, where few have them.
// params: $tenant, $terms [[full-text index, Lucene query]], $seen (a term with so many hits in the whole database is frequent), $most (memories of the tenant that may have a term)
// returns: rows of index, query, ids (null: it is frequent); no row: nobody has it
CALL db.index.fulltext.awaitEventuallyConsistentIndexRefresh()
UNWIND $terms AS term
CALL (term) {
  CALL db.index.fulltext.queryNodes(term[0], term[1], {limit: $seen}) YIELD node AS m
  RETURN collect(CASE WHEN m.tenant = $tenant THEN m.id END) AS ids, count(*) AS hits
}
WITH term, ids, hits >= $seen OR size(ids) > $most AS frequent WHERE frequent OR size(ids) > 0
RETURN collect({index: term[0], query: term[1], ids: CASE WHEN frequent THEN null ELSE ids END}) AS rows
