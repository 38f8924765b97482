"""The change under review: its trees, its files, the suites that it affects, and what it may not
decide."""
