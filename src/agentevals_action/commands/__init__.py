"""What the command line does: one file a command, called by `cli` with plain values, giving an exit code."""
