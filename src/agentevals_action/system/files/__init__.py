"""Files that any program may have filled or moved."""
