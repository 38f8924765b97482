"""The protocol of workers: a question and its answer are one line of JSON each."""

import asyncio
import contextlib
import itertools
import json
from dataclasses import replace
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import cut_line
from agentevals_action.model.target import Request
from agentevals_action.model.trace import Trace
from agentevals_action.system.program import Program
from agentevals_action.system.redaction import redact
from agentevals_action.system.workers import OnStart, RequestUnread, Worker, WorkerEnded, Workers
from agentevals_action.targets.dialects import messages
from agentevals_action.targets.dialects.envelope import ReplyModel, read_object
from agentevals_action.targets.message_texts import prompt_text
from agentevals_action.targets.programs.command import CommandLauncher
from agentevals_action.validation.json_values import parse_json

_SHOWN = 200  # characters of a line that is not an answer


class _Line(ReplyModel):
    """A line of a worker. `type_name` is the class of a reply that is an object, `waiting` are the
    ids of calls that wait for a person's approval."""

    call: int
    reply: Any = None
    type_name: str = ""
    waiting: list[str] | None = None
    error: str | None = None
    traceback: str = ""


class WorkerClient:
    """Asks the workers of one target. A failed call ends its worker, unless the worker itself
    reports the error."""

    def __init__(self, runner: CommandLauncher, workers: Workers) -> None:
        self._runner, self._workers = runner, workers
        self._calls = itertools.count(1)

    async def ask(
        self, program: Program, request: Request, on_start: OnStart | None = None
    ) -> Trace:
        """The answer of a worker, with the time that it took: that for which the call waits for a
        worker counts only towards its time-out. AttemptError."""
        call = next(self._calls)
        question = _question(call, request)
        worker: Worker | None = None
        line: _Line | None = None
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(request.timeout):
                while line is None:  # each of the idle workers may have ended
                    worker = None
                    with contextlib.suppress(RequestUnread):
                        async with self._workers.lend(program, on_start) as worker:
                            started = loop.time()
                            line = _read(await worker.ask(question), call)
                            seconds, errors = loop.time() - started, worker.errors
        except TimeoutError:
            problem = f"no answer within {request.timeout:g} s"
            if worker is None:
                problem += ": its worker was still starting"
            raise self._runner.error(problem, worker.errors if worker else "", "timeout") from None
        except (WorkerEnded, ValueError) as error:
            raise self._runner.error(str(error), worker.errors if worker else "") from None
        except OSError as error:
            raise program.start_error("target", "the command", error) from None
        if line.error is not None:
            reason = line.error or "the agent failed without a message"
            raise self._runner.error(reason, line.traceback or errors)
        if line.reply is None:
            raise self._runner.error("the answer is empty (null)", errors)
        try:
            trace = read_object(line.reply, line.type_name, request.messages, line.waiting or ())
        except ValueError as error:
            raise self._runner.error(str(error), errors) from None
        if trace.duration_ms is None:
            trace = replace(trace, duration_ms=round(seconds * 1000, 1))
        return trace


def _read(data: bytes, call: int) -> _Line:
    text = redact(data.decode("utf-8", "replace"))
    try:
        line = _Line.parse(parse_json(text), "an answer of a worker")
    except ValueError as error:
        problem = f"the worker wrote {cut_line(text, _SHOWN)!r} to its standard output: {error}"
        raise ValueError(problem) from None
    if line.call != call:
        raise ValueError(f"the worker answered call {line.call}, and was asked call {call}")
    return line


def _question(call: int, request: Request) -> bytes:
    try:
        data = {
            "call": call,
            "prompt": prompt_text(request.messages),
            **messages.to_wire(request.messages),
            "test_id": request.eval_id,
            "conversation_id": request.conversation_id,
            "metadata": request.metadata,
            "workspace": str(request.workspace) if request.workspace else None,
            "mcp": request.access.clients if request.access else None,
        }
        return json.dumps(data, default=str).encode("ascii")
    except (OSError, ValueError) as error:
        raise AttemptError("configuration", f"the prompt cannot be read: {error}") from None
