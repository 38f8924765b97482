"""Results of tests: how they are built, scored, summarized, estimated, written and read."""
