"""What programs of others load, in their own Python."""
