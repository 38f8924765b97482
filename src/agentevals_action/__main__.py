"""The command `agentevals-action`, and `python -m agentevals_action`."""

import gc
import os
import signal

# Until the event loop takes over, there is nothing to clean up, and a signal ends the process:
# Python's own handler would print where the imports were.
for _number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(_number, lambda number, _frame: os._exit(128 + number))

# Nothing that an import creates becomes garbage. The command turns the collector on.
gc.disable()

from agentevals_action.cli.app import main  # noqa: E402  # after the handler

if __name__ == "__main__":
    main()
