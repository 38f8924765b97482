"""What people read of a review: its files, the terminal, the job log."""
