"""The `field_accuracy` evaluator: JSON in the output is compared with the expected output."""
