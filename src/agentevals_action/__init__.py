"""The merge gate for AI agents: EVAL.yaml suites on every pull request, compared with the base
branch."""

__version__ = "0.1.0"
