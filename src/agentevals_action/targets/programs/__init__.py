"""Agents that are programs or services: how they are run and asked."""
