"""The report page: one file that opens without a server and fetches nothing."""
