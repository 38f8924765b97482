"""The command `agentevals-action`, and `python -m agentevals_action`."""

import gc

#: Objects made since the last look for garbage that are worth another one: more than are made
#: before a run begins.
_NEW_OBJECTS = 100_000


def main() -> None:
    """Runs the command line."""
    # Nearly all that is imported and that a short run builds lives to its end: to look for garbage
    # in it often takes a tenth of its time.
    gc.set_threshold(_NEW_OBJECTS)
    try:
        from agentevals_action.cli import app  # late: what it brings along is part of that

        app.main()
    finally:
        gc.freeze()  # or the interpreter looks at all of it three times more on its way out


if __name__ == "__main__":
    main()
