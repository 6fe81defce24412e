// Who has a tag: a full-text index of whole tags, for machine-made edges. Tenants share it, as they share the words.
CREATE FULLTEXT INDEX memory_tags IF NOT EXISTS FOR (m:Memory) ON EACH [m.tags]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'keyword'}};

CALL db.awaitIndexes(3600);
