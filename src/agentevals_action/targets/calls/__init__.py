"""Calls to targets: cached, rate-limited, retried, and counted against the budget."""
