"""The comment, the check run and the job summary."""
