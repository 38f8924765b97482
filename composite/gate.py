"""Hands the inputs over as the runner does for a Docker action, and becomes the action.

The runner gives a composite action no `INPUT_…` variables, and a shell may drop names with a
hyphen: one JSON object carries all inputs past the shell."""

import json
import os
from pathlib import Path

CARRIER = "AGENTEVALS_INPUTS"


def main() -> None:
    """Replaces this process, so that the runner's signals reach the action itself."""
    environment = dict(os.environ)
    inputs = json.loads(environment.pop(CARRIER))
    if inputs.get("upload-report") == "true":
        inputs["upload-report"] = "false"  # a later step uploads the page
    environment.update(
        {f"INPUT_{name.replace(' ', '_').upper()}": value for name, value in inputs.items()}
    )
    python = Path(environment["RUNNER_TEMP"], "agentevals-action", "bin", "python")
    os.execve(python, [str(python), "-I", "-m", "agentevals_action", "action"], environment)  # noqa: S606


if __name__ == "__main__":
    main()
