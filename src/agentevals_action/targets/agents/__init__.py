"""Command-line agents: how they are run, and how their event streams are read."""
