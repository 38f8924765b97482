"""The run of a set of suites: engine, runner, order, preparation, fingerprints, resuming."""
