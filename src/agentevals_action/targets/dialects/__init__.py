"""Messages and replies as APIs, frameworks and agents write them: each dialect is a module with
`from_wire`, and `to_wire` if requests have it."""
