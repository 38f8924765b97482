"""Head and base run, and suspects again."""
