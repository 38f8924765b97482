"""Evaluators of answers that are JSON."""
