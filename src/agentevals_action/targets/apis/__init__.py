"""Models behind HTTP APIs: the HTTP client and the vendors' wire formats."""
