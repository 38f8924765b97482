"""Processes, signals, git, paths, and redaction."""
