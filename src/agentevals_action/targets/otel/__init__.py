"""Traces of child processes through OpenTelemetry: spans are received or read, and become a
trace."""
