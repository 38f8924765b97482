"""The log of a job: one folded group a suite, annotations where no check could be written, outputs and summary for the runner."""
