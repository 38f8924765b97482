"""Replies of commands, services and functions: text, envelopes, conversations."""
