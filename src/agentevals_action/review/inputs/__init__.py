"""What decides, read before the first program starts."""
