"""The stores of base results: one file each; a new one is its file and its line here."""

SOURCES = ("auto", "branch", "artifact", "rerun", "file", "none")
