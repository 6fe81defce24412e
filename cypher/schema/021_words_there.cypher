// Services of earlier versions that started on a new database at the same moment may have dropped each other's indexes of
// words for good. Where they are there this does nothing.
CREATE FULLTEXT INDEX memory_words IF NOT EXISTS FOR (m:Memory) ON EACH [m.text]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'english', `fulltext.eventually_consistent`: true}};

CREATE FULLTEXT INDEX lesson_words IF NOT EXISTS FOR (l:Lesson) ON EACH [l.key_lesson, l.context_to_prefer]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'english', `fulltext.eventually_consistent`: true}};

CREATE FULLTEXT INDEX memory_tags IF NOT EXISTS FOR (m:Memory) ON EACH [m.tags]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'keyword', `fulltext.eventually_consistent`: true}};

CALL db.awaitIndexes(3600);
