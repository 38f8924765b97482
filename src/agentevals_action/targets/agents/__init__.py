"""What targets share that are commands: how they are run, and how their streams are read."""
