"""TODO_DOC."""
