// Words in the graph itself: what search goes by while Milvus is away, and what machine-made edges are found by.
// A full-text index has no key, so tenants share it and every statement that asks it looks at the tenant afterwards.
CREATE FULLTEXT INDEX memory_words IF NOT EXISTS FOR (m:Memory) ON EACH [m.text]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'english'}};

CREATE FULLTEXT INDEX lesson_words IF NOT EXISTS FOR (l:Lesson) ON EACH [l.key_lesson, l.context_to_prefer]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'english'}};

// An index that is still being filled cannot be asked.
CALL db.awaitIndexes(3600);
