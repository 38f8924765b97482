"""Agents that are commands: how they are run, and how their event streams are read."""
