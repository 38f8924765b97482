"""The models of suites in files, with their short forms."""
