"""Readers of YAML and JSONL that keep positions, and the diagnostics about them."""
