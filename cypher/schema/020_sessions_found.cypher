// Sessions by what they asked for, by their state, and what they said of lessons.

// The requests of sessions by their words. `asked_in` is one word for a tenant, a namespace and an outcome, which only
// requests of sessions have: whoever asks for it meets no others, however many there are.
CREATE FULLTEXT INDEX request_words IF NOT EXISTS FOR (m:UserRequest) ON EACH [m.asked_in, m.text]
OPTIONS {indexConfig: {`fulltext.analyzer`: 'english', `fulltext.eventually_consistent`: true}};

CREATE INDEX session_state IF NOT EXISTS FOR (s:Session) ON (s.tenant, s.state, s.id);

// The signals that sessions gave: only those are in this index.
CREATE INDEX signal_session IF NOT EXISTS FOR (s:Signal) ON (s.tenant, s.session);

CALL db.awaitIndexes(3600);
