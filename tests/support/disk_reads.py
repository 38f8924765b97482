"""The command line, and what of code and templates it read from the disk once a child that is not
git had begun: a line each on standard error."""

import sys
from pathlib import Path

import agentevals_action

_OURS = str(Path(agentevals_action.__file__).resolve().parent)
_TEMPLATES = str(Path(_OURS).parents[1] / "templates")


class Watch:
    """An audit hook (PEP 578)."""

    def __init__(self) -> None:
        self.is_on = False
        self.modules: dict[str, None] = {}
        self.files: dict[str, None] = {}

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "subprocess.Popen":
            self.is_on = self.is_on or Path(str(arguments[0])).name != "git"
        elif self.is_on and event == "import":
            self.modules[str(arguments[0])] = None
        elif self.is_on and event == "open" and str(arguments[0]).startswith((_OURS, _TEMPLATES)):
            self.files[str(arguments[0])] = None

    def told(self) -> list[str]:
        """What was read; modules that were only looked for, and are not there, are none."""
        return [*(name for name in self.modules if name in sys.modules), *self.files]


if __name__ == "__main__":
    from agentevals_action.cli.app import main

    watch = Watch()
    sys.addaudithook(watch)
    try:
        main()
    finally:
        print(
            "began" if watch.is_on else "nothing began",
            *(f"read {name}" for name in watch.told()),
            sep="\n",
            file=sys.stderr,
        )
