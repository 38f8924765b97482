"""GitHub: events, the API, the comment, the check run, artifacts, the data branch."""
