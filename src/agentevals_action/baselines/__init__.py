"""The sources of the base's results: one module for each, and the formats of stored results."""
