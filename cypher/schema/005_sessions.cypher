// Finished work that was handed in, and the queue of it that is still to be learnt from.

CREATE CONSTRAINT session_id IF NOT EXISTS FOR (s:Session) REQUIRE (s.tenant, s.id) IS UNIQUE;

// The queue: a session has due_at, the moment from which a worker may take it, until it is finished. So only what is
// still to be done is in this index.
CREATE INDEX session_due IF NOT EXISTS FOR (s:Session) ON (s.tenant, s.due_at);

// Lessons of a namespace are stored by one worker at a time: whoever is at it holds this node.
CREATE CONSTRAINT distilling_namespace IF NOT EXISTS FOR (d:Distilling) REQUIRE (d.tenant, d.namespace) IS UNIQUE;
