// Tenants may share one index, where a row is found by its key alone: so no key belongs to two of them.

// A lesson's id is its key there.
CREATE CONSTRAINT lesson_number IF NOT EXISTS FOR (l:Lesson) REQUIRE l.rb_id IS UNIQUE;

// A memory's key is its id, after the tenant and a slash where it is not the default tenant's: a slash in an id is spelt.
// Rows under the old keys belong to nobody now; the sweep that follows a start removes them.
MATCH (m:Memory) WHERE m.id CONTAINS '/'
CALL (m) {
  WITH m, replace(replace(replace(m.id, '%', '%25'), "'", '%27'), '/', '%2F') AS spelt
  SET m.embedding_id = CASE m.tenant WHEN 'default' THEN 'emb_' + spelt ELSE 'emb_' + m.tenant + '/' + spelt END,
    m.to_index = true
} IN TRANSACTIONS;
