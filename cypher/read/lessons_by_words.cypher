// Lessons by the words of what they say and of when they apply: what is left of a search while Milvus is away.
// params: $tenant, $question (a Lucene query), $limit, $tags, $outcome, $scope, $namespace, $team (of the namespace)
// returns: rows of rb_id, revision, version, score, best first
CALL db.index.fulltext.awaitEventuallyConsistentIndexRefresh()
CALL db.index.fulltext.queryNodes('lesson_words', $question) YIELD node AS l, score
WHERE l.tenant = $tenant AND l.status = 'ACTIVE'
  AND all(tag IN $tags WHERE tag IN l.tags)
  AND ($outcome IS NULL OR l.outcome = $outcome)
  AND ($scope IS NULL OR l.scope = $scope)
  AND ($namespace IS NULL OR l.namespace = $namespace OR l.scope = 'ORG'
    OR (l.scope = 'TEAM' AND split(l.namespace, '/')[0] = $team))
WITH l, score ORDER BY score DESC, l.rb_id LIMIT $limit
RETURN collect({rb_id: l.rb_id, revision: l.revision, version: l.version, score: score}) AS rows
