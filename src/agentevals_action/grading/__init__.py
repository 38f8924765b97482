"""What evaluators share: arithmetic, judges, readers of answers."""
