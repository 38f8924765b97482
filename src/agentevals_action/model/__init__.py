"""The immutable data types of the project. They import only one another."""
