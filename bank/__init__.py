"""What was learnt, found by meaning, tied to the graph."""
