"""What targets share that are models behind an HTTP API: the endpoint, the wire forms of the
vendors."""
