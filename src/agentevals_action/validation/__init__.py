"""Models of files: field errors, positions, JSON values and schemas, patterns."""
