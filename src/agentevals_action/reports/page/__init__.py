"""The report page, and the page of the history."""
