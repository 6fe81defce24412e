// The requests of sessions that share most words with a question, for several questions at once; of equals the newest first.
// params: $tenant, $questions (Lucene queries, each for one word of `asked_in` and for words of the text), $nearest (how many are looked at), $limit (how many are told)
// returns: rows of ids (of memories), in the order of the questions
CALL db.index.fulltext.awaitEventuallyConsistentIndexRefresh()
UNWIND range(0, size($questions) - 1) AS place
CALL (place) {
  CALL db.index.fulltext.queryNodes('request_words', $questions[place], {limit: $nearest}) YIELD node AS m, score
  WHERE m.tenant = $tenant
  WITH m, score ORDER BY score DESC, m.id DESC LIMIT $limit
  RETURN collect(m.id) AS ids
}
WITH place, ids ORDER BY place
RETURN collect({ids: ids}) AS rows
