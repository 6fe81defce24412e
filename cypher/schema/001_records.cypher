// What is unique and what is indexed: memories, edges, lessons, and what the service keeps for itself.

// Which of these files were applied.
CREATE CONSTRAINT schema_number IF NOT EXISTS FOR (s:CairnSchema) REQUIRE s.number IS UNIQUE;

// A memory's id is unique over all six types within a tenant.
CREATE CONSTRAINT memory_id IF NOT EXISTS FOR (m:Memory) REQUIRE (m.tenant, m.id) IS UNIQUE;

// An edge's id is unique within a tenant, whatever it joins.
CREATE CONSTRAINT edge_id IF NOT EXISTS FOR ()-[r:RELATES]-() REQUIRE (r.tenant, r.id) IS UNIQUE;

CREATE CONSTRAINT lesson_id IF NOT EXISTS FOR (l:Lesson) REQUIRE (l.tenant, l.rb_id) IS UNIQUE;

// Memories by time, newest or oldest first, without sorting.
CREATE INDEX memory_time IF NOT EXISTS FOR (m:Memory) ON (m.tenant, m.ingestion_time, m.id);

CREATE INDEX memory_conversation IF NOT EXISTS FOR (m:Memory) ON (m.tenant, m.conv_id);

// The marks that say "still to be indexed": only marked records are in these two indexes.
CREATE INDEX memory_to_index IF NOT EXISTS FOR (m:Memory) ON (m.tenant, m.to_index);
CREATE INDEX lesson_to_index IF NOT EXISTS FOR (l:Lesson) ON (l.tenant, l.to_index);

// Rows of the vector store whose record is gone and that are still to be removed there.
CREATE CONSTRAINT removal_key IF NOT EXISTS FOR (r:Removal) REQUIRE (r.tenant, r.collection, r.key) IS UNIQUE;

// The answers of calls that came with an idempotency key.
CREATE CONSTRAINT idempotency_key IF NOT EXISTS FOR (k:IdempotencyKey) REQUIRE (k.tenant, k.key) IS UNIQUE;
