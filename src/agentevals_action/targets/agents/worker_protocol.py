"""The protocol of workers: a question and its answer are one line of JSON each."""

import asyncio
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import cut_line
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.json_values import parse_json
from agentevals_action.system import process
from agentevals_action.system.redaction import redact
from agentevals_action.system.workers import Ended, Open, Program, Worker, Workers
from agentevals_action.targets.agents.command import CommandRunner, describe_end
from agentevals_action.targets.apis.openai_chat import chat_messages
from agentevals_action.targets.base import Request
from agentevals_action.targets.message_texts import prompt_text
from agentevals_action.targets.replies.envelope import read_reply
from agentevals_action.targets.reply_model import ReplyModel

_SHOWN = 200  # characters of a line that is not an answer
_MAX_VALUES = 1_000_000  # objects and lists of an answer: 10 MB of `{},` would be 250 MB


class _Answer(ReplyModel):
    call: int
    reply: Any = None
    error: str | None = None
    traceback: str = ""
    spans: list[Any] | None = None


#: Adds the OpenTelemetry spans of a call to the trace of its reply; AttemptError if they are not
#: valid.
AddSpans = Callable[[Trace, list[Any]], Trace]


class Answers:
    """The answers of one target's workers. A failed call ends its worker, unless the worker itself
    reports the error."""

    def __init__(self, runner: CommandRunner, workers: Workers) -> None:
        self._runner, self._workers = runner, workers
        self._calls = itertools.count(1)

    async def answer(
        self,
        program: Program,
        request: Request,
        open_worker: Open | None = None,
        add_spans: AddSpans | None = None,
    ) -> Trace:
        """The answer of a worker, with the time that it took; the time for which the call waits for
        a worker counts only towards its time-out. AttemptError."""
        call = next(self._calls)
        question = _question(call, request)
        worker: Worker | None = None
        loop = asyncio.get_running_loop()
        lent = self._workers.lend(program, open_worker)
        try:
            async with asyncio.timeout(request.timeout), lent as worker:
                started = loop.time()
                answer = self._read(await worker.ask(question), call, worker)
                seconds = loop.time() - started
        except TimeoutError:
            problem = f"no answer within {request.timeout:g} s"
            if worker is None:
                problem += ": its worker was still starting"
            raise self._runner.error(problem, _errors(worker), "timeout") from None
        except Ended as ended:
            raise self.error(ended, _errors(worker)) from None
        if answer.error is not None:
            raise self._runner.error(answer.error, answer.traceback or _errors(worker))
        trace = self._trace(answer.reply, request.messages, seconds, _errors(worker))
        if add_spans is None:
            return trace
        return await asyncio.to_thread(add_spans, trace, answer.spans or [])

    def error(self, ended: Ended, output: str) -> AttemptError:
        """The error of a worker that ended, with the last lines of its output."""
        problem = "the worker closed its standard output"
        if ended.too_long:
            problem = f"the worker wrote more than {process.OUTPUT_LIMIT // 1024**2} MB"
        elif ended.more:
            problem = "the worker wrote more lines than its answer to its standard output"
        elif ended.returncode is not None:
            problem = f"the worker {describe_end(ended.returncode)}"
        return self._runner.error(problem, output)

    def _read(self, line: bytes, call: int, worker: Worker) -> _Answer:
        text = redact(line.decode("utf-8", "replace"))
        if text.count("{") + text.count("[") > _MAX_VALUES:
            problem = f"the worker wrote an answer with more than {_MAX_VALUES:,} values"
            raise self._runner.error(problem, worker.errors)
        try:
            answer = _Answer.parse(parse_json(text), "an answer of a worker")
        except ValueError as error:
            problem = f"the worker wrote {cut_line(text, _SHOWN)!r} to its standard output: {error}"
            raise self._runner.error(problem, worker.errors) from None
        if answer.call != call:
            problem = f"the worker answered call {answer.call}, and was asked call {call}"
            raise self._runner.error(problem, worker.errors)
        return answer

    def _trace(self, reply: Any, question: Sequence[Message], seconds: float, output: str) -> Trace:
        if reply is None:
            raise self._runner.error("the answer is empty (null)", output)
        try:
            text = reply if isinstance(reply, str) else json.dumps(reply)
            trace = read_reply(text, question)
        except ValueError as error:
            raise self._runner.error(str(error), output) from None
        if trace.duration_ms is None:
            return replace(trace, duration_ms=round(seconds * 1000, 1))
        return trace


def _errors(worker: Worker | None) -> str:
    return worker.errors if worker else ""


def _question(call: int, request: Request) -> bytes:
    try:
        data = {
            "call": call,
            "prompt": prompt_text(request.messages),
            "messages": chat_messages(request.messages),
            "test_id": request.eval_id,
            "conversation_id": request.conversation_id,
            "metadata": request.metadata,
            "workspace": str(request.workspace) if request.workspace else None,
        }
        return json.dumps(data, default=str).encode("ascii")
    except (OSError, ValueError) as error:
        raise AttemptError("configuration", f"the prompt cannot be read: {error}") from None
