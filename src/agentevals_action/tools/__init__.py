"""Answers the tools and commands of an agent under test from its suite."""
