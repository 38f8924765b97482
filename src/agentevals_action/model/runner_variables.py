"""The variables of the GitHub runner that no child process, suite or target may read."""

import re

#: The runner's tokens, the action's inputs, and the files by which a step controls later steps.
_NEVER_PASSED = re.compile(
    r"INPUT_.*|ACTIONS_.*|GITHUB_(TOKEN|ENV|OUTPUT|PATH|STATE|STEP_SUMMARY)", re.DOTALL
)


def is_never_passed(name: str) -> bool:
    """Whether a variable is never passed on, whoever names it."""
    return bool(_NEVER_PASSED.fullmatch(name))
