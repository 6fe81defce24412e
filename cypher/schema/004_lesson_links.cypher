// What is suggested between lessons, and the sweeps that look over them.

// Suggested links that nobody has settled, the strongest first.
CREATE INDEX suggested_strength IF NOT EXISTS FOR ()-[s:SUGGESTED]-() ON (s.tenant, s.state, s.strength);

CREATE CONSTRAINT sweep_kind IF NOT EXISTS FOR (s:Sweep) REQUIRE (s.tenant, s.kind) IS UNIQUE;
