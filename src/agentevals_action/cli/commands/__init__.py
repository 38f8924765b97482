"""The commands: one module each with the function `command`, and a name in `cli/app.py`."""
