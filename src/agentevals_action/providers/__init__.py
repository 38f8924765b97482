"""The providers of targets: one file each; a new one is its file and its line here."""
