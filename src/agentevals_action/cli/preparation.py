"""What `run` and `selftest` check and prepare before they run tests."""

from collections.abc import Sequence
from functools import partial

from agentevals_action.cli.loaded_suites import LoadedSuites
from agentevals_action.errors import AttemptError, InvalidInput
from agentevals_action.execution.engine import Engine
from agentevals_action.github.runner import job_log
from agentevals_action.model.suite import Suite
from agentevals_action.system.redaction import Redactor


def check_targets(engine: Engine, suites: Sequence[Suite]) -> None:
    """InvalidInput if a target is not declared, or a variable of it is not set."""
    found = (diagnostic for suite in suites for diagnostic in engine.target_errors(suite))
    errors = tuple(dict.fromkeys(map(str, found)))
    if errors:
        raise InvalidInput("targets cannot be used, nothing was run", errors=errors)


async def prepare(engine: Engine, loaded: LoadedSuites, redactor: Redactor) -> AttemptError | None:
    """Prepares the working tree; the error if that fails."""
    in_actions = loaded.environ.get("GITHUB_ACTIONS") == "true"
    log = partial(job_log.folded, redact=redactor.redact, in_actions=in_actions)
    try:
        await engine.prepare(loaded.folder, log)
    except AttemptError as error:
        return error
    return None
