"""YAML with positions, and diagnostics about it."""
