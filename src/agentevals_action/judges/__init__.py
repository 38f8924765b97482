"""Judges that are measured: people's labels on answers, and how judges agree with them."""
