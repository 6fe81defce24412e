// The indexes of words no longer hold up a write, which took half as long again with them: Neo4j brings them up to date
// a moment after the commit. Whoever asks them waits for that moment, so an answer misses nothing.
DROP INDEX memory_words IF EXISTS;
DROP INDEX lesson_words IF EXISTS;
DROP INDEX memory_tags IF EXISTS;

CREATE FULLTEXT INDEX memory_words IF NOT EXISTS FOR (m:Memory) ON EACH [m.text]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'english', `fulltext.eventually_consistent`: true}};

CREATE FULLTEXT INDEX lesson_words IF NOT EXISTS FOR (l:Lesson) ON EACH [l.key_lesson, l.context_to_prefer]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'english', `fulltext.eventually_consistent`: true}};

CREATE FULLTEXT INDEX memory_tags IF NOT EXISTS FOR (m:Memory) ON EACH [m.tags]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'keyword', `fulltext.eventually_consistent`: true}};

CALL db.awaitIndexes(3600);
