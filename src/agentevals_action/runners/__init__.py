"""Runs the suites of programs of others, and reads their results."""
