"""What may stand in a file: declared as fields with types, bounds and descriptions, read whole or
with all that is wrong with it."""
