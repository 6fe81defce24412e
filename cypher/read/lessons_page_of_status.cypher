// A page of the lessons of one status, newest id first; the cursor is the last one's id.
// params: $tenant, $before, $limit, $tags, $outcome, $namespace, $scope, $status, $min_confidence
// returns: rows of properties
MATCH (l:Lesson)
USING INDEX SEEK l:Lesson(tenant, status, rb_id)
WHERE l.tenant = $tenant AND l.status = $status AND l.rb_id <= coalesce($before - 1, 9223372036854775807)
  AND all(tag IN $tags WHERE tag IN l.tags)
  AND ($outcome IS NULL OR l.outcome = $outcome)
  AND ($namespace IS NULL OR l.namespace = $namespace)
  AND ($scope IS NULL OR l.scope = $scope)
  AND ($status IS NULL OR l.status = $status)
  AND coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence) >= $min_confidence
WITH l ORDER BY l.tenant DESC, l.status DESC, l.rb_id DESC LIMIT $limit
RETURN collect({properties: l {.*, created_at: toString(l.created_at), updated_at: toString(l.updated_at), last_used_at: toString(l.last_used_at),
  confidence: coalesce(l.confidence_ahead[(timestamp() / 1000 - l.idle_since) / l.idle_period], l.confidence_ahead[-1], l.confidence)}}) AS rows
