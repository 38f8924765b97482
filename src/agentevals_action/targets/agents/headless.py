"""Command-line agents without a person: one run of the program for each call, with the prompt on
standard input and a JSON stream on standard output."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.model.file_model import ListOf, NonEmpty
from agentevals_action.model.messages import prompt_text
from agentevals_action.model.trace import Trace
from agentevals_action.system import process
from agentevals_action.system.paths import Folder
from agentevals_action.targets.agents.command import (
    CommandRunner,
    VariableNames,
    WorkingFolder,
    describe_end,
    locate,
    named_files,
    with_last_lines,
)
from agentevals_action.targets.agents.stream import Event, Failure, Lines, Outcome, read_lines
from agentevals_action.targets.base import ProviderContext, ProviderOptions, Request

#: Bytes of a stream, which contains every file that the agent read.
STREAM_LIMIT = 64 * 1024 * 1024
_COMMAND_NOT_FOUND = 127  # of a shell, and of `env` in a first line
#: Parts of these programs' messages about a missing login, before the stream begins.
_NO_LOGIN = (
    "no authentication",
    "not authenticated",
    "not logged in",
    "authentication token",
    "bad credentials",
    "/login",
    "invalid api key",
)

Words = ListOf[str]


def split(command: str | Sequence[str]) -> tuple[str, ...]:
    """The words of a command: a list unchanged, a text split like a shell does (no shell runs
    it)."""
    return tuple(shlex.split(command)) if isinstance(command, str) else tuple(command)


def _check_command(command: str | tuple[str, ...]) -> str | tuple[str, ...]:
    try:
        words = split(command)
    except ValueError as error:
        raise ValueError(f"its quotes are wrong ({error})") from None
    if not words or not words[0].strip():
        raise ValueError("the command is empty; write the program")
    return command


Command = Annotated[str | Words, AfterValidator(_check_command)]


class AgentOptions(ProviderOptions):
    """The common fields of these agents' targets."""

    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "command": ("executable", "binary"),
        "args": ("arguments",),
    }

    command: Annotated[
        Command, Field(description="The program, with words before its options if it needs any.")
    ]
    model: Annotated[
        NonEmpty | None,
        Field(description="The model, as the agent's own option names it; its default otherwise."),
    ] = None
    args: Annotated[
        Words,
        Field(
            description="More words for the command line. What the agent may do is its own "
            "default; what widens that stands here."
        ),
    ] = ()
    cwd: WorkingFolder = None
    env: VariableNames = None

    def variables(self) -> Sequence[str]:
        """The names of `env`: the agent expects them."""
        return self.env or ()

    def files(self, folder: Folder) -> Sequence[str]:
        """Words of the command that are files of the repository."""
        try:
            return named_files((*split(self.command), *self.args), self.cwd, folder)
        except ValueError:  # a folder, or quotes, with `${{ }}` in it
            return ()


@dataclass(frozen=True)
class Product:
    """An agent: `package` is the command that installs it, `key_hint` the advice for a missing
    login, `read` converts its events."""

    name: str
    package: str
    key_hint: str
    read: Callable[[Sequence[Event]], Outcome]


class AgentCli:
    """A connected agent. `words` follow the words of the command, then come `args`, then `last`."""

    def __init__(
        self,
        product: Product,
        options: AgentOptions,
        words: Sequence[str],
        context: ProviderContext,
        last: Sequence[str] = (),
    ) -> None:
        self._product, self._options = product, options
        self._own_words, self._last = tuple(words), tuple(last)
        self._runner = CommandRunner(options.env, context)

    async def complete(self, request: Request) -> Trace:
        """One run. TargetDead if the agent is not installed, has no login or does not know the
        model; other errors as every provider."""
        done = await self._run(request)
        if done.timed_out:
            message = f"no answer within {request.timeout:g} s"
            raise self._runner.error(message, done.stderr, "timeout")
        if done.truncated:
            message = f"{self._product.name} wrote more than {STREAM_LIMIT // 1024**2} MB"
            raise self._runner.error(message, done.stderr)
        lines = read_lines(done.stdout)
        outcome = self._product.read(lines.events)
        if error := self._find_error(done, lines, outcome):
            error.spent = outcome.trace
            raise error
        return outcome.trace

    async def check(self, request: Request) -> None:
        """One short run: only a run shows whether it has a login and knows the model."""
        await self.complete(request)

    async def close(self) -> None:
        """Does nothing: no connection is open."""

    async def _run(self, request: Request) -> process.Completed:
        try:
            prompt = prompt_text(request.messages)
        except (OSError, ValueError) as error:
            raise AttemptError("configuration", f"the prompt cannot be read: {error}") from None
        folder, words = self._locate(request)
        try:
            return await self._runner.run(
                words, request, folder, request.timeout, stdin=prompt, limit=STREAM_LIMIT
            )
        except OSError as error:
            name = self._product.name
            if self._runner.finds(words[0], folder):
                raise AttemptError("target", f"{name} cannot be started: {error}") from None
            raise TargetDead(
                f"{name} is not installed: there is no command {words[0]!r}",
                f"install it in the input `setup` (`{self._product.package}`), or name it in the "
                "target's `command`",
            ) from None

    def _locate(self, request: Request) -> tuple[Path, tuple[str, ...]]:
        command, args = split(self._options.command), self._options.args
        folder, located = locate((*command, *args), request, self._options.cwd)
        words, end = tuple(located), len(command)
        return folder, (*words[:end], *self._own_words, *words[end:], *self._last)

    def _find_error(
        self, done: process.Completed, lines: Lines, outcome: Outcome
    ) -> AttemptError | None:
        if outcome.failure is not None:
            return self._stream_error(outcome.failure)
        if problem := _find_problem(done, lines, outcome):
            return self._command_error(problem, done.returncode, f"{lines.text}\n{done.stderr}")
        return None

    def _stream_error(self, failure: Failure) -> AttemptError:
        message = f"{self._product.name}: {failure.message}"
        if failure.severity == "dead":
            return TargetDead(message, self._login_hint())
        if failure.severity == "own":
            return AttemptError("target", message, self._runner.hint())
        return TransientError(message, limited=failure.severity == "limited")

    def _command_error(self, problem: str, returncode: int, output: str) -> AttemptError:
        """The error of a run that did not finish; its output outside of the stream may contain the
        reason."""
        message = with_last_lines(f"{self._product.name}: {problem}", output)
        if returncode and any(words in output.lower() for words in _NO_LOGIN):
            return TargetDead(message, self._login_hint())
        hint = self._runner.hint()
        if returncode == _COMMAND_NOT_FOUND:
            hint = "a program that it needs may be missing; install it in the input `setup`"
        return AttemptError("target", message, hint)

    def _login_hint(self) -> str:
        return "; ".join(filter(None, (self._product.key_hint, self._runner.hint())))


def _find_problem(done: process.Completed, lines: Lines, outcome: Outcome) -> str:
    """The reason why a stream is not a complete run; empty if it is."""
    if done.returncode:
        return f"the command {describe_end(done.returncode)}"
    if lines.broken:
        return lines.broken
    if not outcome.ended:
        return "its stream ended before the run did" if lines.events else "it wrote no JSON stream"
    if not outcome.trace.output.strip() and not outcome.trace.tool_calls:
        return "it succeeded without an answer"
    return ""
