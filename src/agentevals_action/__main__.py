"""`python -m agentevals_action` is the command `agentevals-action`."""

from agentevals_action.cli import main

if __name__ == "__main__":
    main()
