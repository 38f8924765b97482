"""The folders that agents work in: made, compared, reset, removed."""
