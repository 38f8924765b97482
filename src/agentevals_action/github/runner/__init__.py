"""The runner of a job: what it states, and what it reads from the job."""
