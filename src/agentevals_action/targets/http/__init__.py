"""HTTP: the client, its errors, and models behind it."""
