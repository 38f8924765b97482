"""Results of tests: how they are built, scored, summarized, written, read and merged."""
