"""The nouns, frozen; they import nothing of ours but one another."""
