// Which memories have words or tags that few have. A term that is frequent in the whole database, or that one memory alone has, is left out.
// params: $tenant, $terms [[full-text index, Lucene query]], $seen (a term with so many hits is frequent), $most (memories of the tenant that may have it)
// returns: rows of index, query, ids
UNWIND $terms AS term
CALL (term) {
  CALL db.index.fulltext.queryNodes(term[0], term[1], {limit: $seen}) YIELD node AS m
  RETURN collect(CASE WHEN m.tenant = $tenant THEN m.id END) AS ids, count(*) AS hits
}
WITH term, ids, hits WHERE hits < $seen AND 1 < size(ids) <= $most
RETURN collect({index: term[0], query: term[1], ids: ids}) AS rows
