"""The prices of known models: a dated table, the search in it, and its update."""
