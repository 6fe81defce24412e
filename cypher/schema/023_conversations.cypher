// Pages of one conversation, newest first, without sorting all of it.
CREATE INDEX memory_of_conversation IF NOT EXISTS FOR (m:Memory) ON (m.tenant, m.conv_id, m.ingestion_time, m.id);

CALL db.awaitIndexes(3600);
DROP INDEX memory_conversation IF EXISTS;
