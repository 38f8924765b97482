"""The folders that agents work in."""
