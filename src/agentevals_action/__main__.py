"""The command `agentevals-action`, and `python -m agentevals_action`."""

from agentevals_action.cli.app import main

if __name__ == "__main__":
    main()
