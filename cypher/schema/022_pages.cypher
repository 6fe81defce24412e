// Pages of the lessons of one namespace, or of one status, newest first, without walking past all others.
CREATE INDEX lesson_namespace IF NOT EXISTS FOR (l:Lesson) ON (l.tenant, l.namespace, l.rb_id);
CREATE INDEX lesson_status IF NOT EXISTS FOR (l:Lesson) ON (l.tenant, l.status, l.rb_id);

CALL db.awaitIndexes(3600);
