"""Templates that a pull request can edit, rendered with a limit of time and memory.

Attack: nested loops over `range(99999)` take hours, `{% set text = text ~ text %}` fills the
memory, and while they run, the process cannot react to a signal. Such a template is rendered in a
child process. One that only names variables is rendered here: it costs what its result costs, whose
length is limited, and most judge prompts and HTTP bodies need no process for each call."""

import base64
import json
import pickle
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agentevals_action import templating
from agentevals_action.system import process, template_process

_PROGRAM = (sys.executable, "-I", "-m", template_process.__name__)
#: Seconds until the child is killed. Its processor time has a limit of its own, which does not
#: depend on how busy the machine is.
_TIMEOUT = 60.0
#: Bytes of the result: a character takes up to 12 in JSON.
_OUTPUT_LIMIT = 12 * templating.MAX_RENDERED + 100
_ENDED_BY_LIMIT = (-signal.SIGXCPU, -signal.SIGKILL)


async def render(function: Callable[..., Any], text: str, *arguments: Any) -> Any:
    """The result (JSON) of a function of `templating` for a template and the other arguments.

    ValueError when the template cannot be rendered or exceeds a limit."""
    if templating.only_names_variables(text):
        return function(text, *arguments)
    return await render_apart(function, text, *arguments)


async def render_apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """As `render`, always in a child process."""
    request = base64.b64encode(pickle.dumps((function.__name__, arguments))).decode()
    try:
        done = await process.run(
            _PROGRAM,
            cwd=Path("/"),
            environment={},
            timeout=_TIMEOUT,
            stdin=request,
            limit=_OUTPUT_LIMIT,
        )
    except OSError as error:
        raise ValueError(f"no process could be started for a template: {error}") from error
    if done.timed_out or done.returncode in _ENDED_BY_LIMIT:
        seconds = template_process.TIME_LIMIT
        raise ValueError(f"the template took longer than {seconds} s; write it with fewer loops")
    if done.returncode or done.truncated:
        raise ValueError("the template needs too much memory; write it with a smaller result")
    answer = json.loads(done.stdout)
    if "problem" in answer:
        raise ValueError(answer["problem"])
    return answer["value"]
