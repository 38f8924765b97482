"""From the files of a run to its review: suspects, evidence, each test's state, the outcome."""
