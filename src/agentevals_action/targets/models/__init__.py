"""Models behind an HTTP API: each provider has the format of its API."""
