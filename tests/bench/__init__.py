"""`make bench`: measures the service beside its bare stores, in one run, and prints what it found."""
