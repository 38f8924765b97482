"""The comparison of head and base: falls, confirmation by fresh samples, the state of each test."""
