"""The commands: one module each, which has the function `command`."""
