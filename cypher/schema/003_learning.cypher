// What the bank learns from: signals about lessons, receipts of recalls, and the rule that confidences were computed by.

CREATE CONSTRAINT signal_id IF NOT EXISTS FOR (s:Signal) REQUIRE (s.tenant, s.id) IS UNIQUE;

CREATE CONSTRAINT receipt_id IF NOT EXISTS FOR (r:Receipt) REQUIRE (r.tenant, r.id) IS UNIQUE;

// Receipts by time: old ones are removed.
CREATE INDEX receipt_time IF NOT EXISTS FOR (r:Receipt) ON (r.tenant, r.created_time);

CREATE CONSTRAINT learning_tenant IF NOT EXISTS FOR (n:Learning) REQUIRE n.tenant IS UNIQUE;

// Lessons that proved themselves in several namespaces: only those are in this index.
CREATE INDEX lesson_suggested_scope IF NOT EXISTS FOR (l:Lesson) ON (l.tenant, l.suggested_scope);
