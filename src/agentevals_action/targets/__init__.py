"""Targets: the systems that answer, and the calls to them."""
