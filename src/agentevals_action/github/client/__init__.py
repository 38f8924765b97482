"""The client of GitHub: requests, retries, and the replies that are read."""
