"""Results that earlier runs left, and how they are read and written."""
