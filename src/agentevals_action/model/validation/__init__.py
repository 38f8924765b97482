"""The validation of data from files: JSON values, the base class of models, errors in words."""
