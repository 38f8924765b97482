"""Models of files: field errors, positions, JSON values."""
