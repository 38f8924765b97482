"""Wire formats: each is a module with `to_wire` for requests and `from_wire` for what a model or an
agent wrote."""
