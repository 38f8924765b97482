"""The `code_judge` evaluator: a program scores the answer."""
