// What still waits to be indexed: memories, lessons, and rows to be removed from Milvus; no rows: nothing waits
CALL () {
  MATCH (m:Memory {tenant: 'default', to_index: true})
  RETURN [x IN labels(m) WHERE x <> 'Memory'][0] AS what, m.id AS id, m.text AS text, m.update_time AS since
  UNION ALL
  MATCH (l:Lesson {tenant: 'default', to_index: true})
  RETURN 'Lesson' AS what, toString(l.rb_id) AS id, l.key_lesson AS text, l.updated_at AS since
  UNION ALL
  MATCH (r:Removal {tenant: 'default'})
  RETURN 'removal from ' + r.collection AS what, r.key AS id, null AS text, null AS since
}
RETURN what, id, text, since
ORDER BY since, id LIMIT 500
