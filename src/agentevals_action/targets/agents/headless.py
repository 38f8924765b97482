"""An agent's own command line, run without a person: prompt in on standard input, its JSON stream
out, one run a call."""

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
from agentevals_action.targets.agents import command as agent_command
from agentevals_action.targets.agents.stream import Event, Failure, Lines, Outcome, read_lines
from agentevals_action.targets.base import ProviderContext, ProviderOptions, Request

#: Bytes of a stream that are read: it holds every file that the agent looked at.
STREAM_LIMIT = 64 * 1024 * 1024
_COMMAND_NOT_FOUND = 127  # of a shell, and of `env` in a first line

Words = ListOf[str]


def _is_command(command: str | tuple[str, ...]) -> str | tuple[str, ...]:
    try:
        words = split(command)
    except ValueError as error:
        raise ValueError(f"its quotes are wrong ({error})") from None
    if not words or not words[0].strip():
        raise ValueError("the command is empty; write the program")
    return command


def split(command: str | Sequence[str]) -> tuple[str, ...]:
    """The words of a command: a list as it is, a text split as a shell would, though none runs
    it."""
    return tuple(shlex.split(command)) if isinstance(command, str) else tuple(command)


Command = Annotated[str | Words, AfterValidator(_is_command)]


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
            description="More words for the command line. What the agent may do is its own default; what widens that stands here."
        ),
    ] = ()
    cwd: agent_command.Place = None
    env: agent_command.Names = None

    def variables(self) -> Sequence[str]:
        """The names of `env`: the agent expects them."""
        return self.env or ()

    def files(self, folder: Folder) -> Sequence[str]:
        """Words of the command that are files of the repository."""
        try:
            place = folder.resolve(self.cwd) if self.cwd else folder.path
            words = (*split(self.command), *self.args)
        except ValueError:  # a folder, or quotes, with `${{ }}` in it: no file can be told
            return ()
        return agent_command.files(words, place, folder.root)


@dataclass(frozen=True)
class Product:
    """An agent as it is spoken of and read: `package` is how it is installed, `key_hint` what to do
    when it has no login, `read` makes of its events what they told."""

    name: str
    package: str
    key_hint: str
    read: Callable[[Sequence[Event]], Outcome]


class AgentCli:
    """A connected agent: the provider that an options class gives out. `options` stand between the
    command's own words and `args`, `last` behind them."""

    def __init__(
        self,
        product: Product,
        fields: AgentOptions,
        options: Sequence[str],
        surroundings: ProviderContext,
        last: Sequence[str] = (),
    ) -> None:
        self._product, self._fields, self._options, self._last = (
            product,
            fields,
            tuple(options),
            tuple(last),
        )
        self._runner = agent_command.Runner(fields.env, surroundings)

    async def complete(self, request: Request) -> Trace:
        """One run. Raises as providers do: TargetDead when the agent is not installed, has no login
        or does not know the model."""
        done = await self._run(request)
        if done.timed_out:
            raise self._runner.failed(
                f"no answer within {request.timeout:g} s", done.stderr, "timeout"
            )
        if done.truncated:
            raise self._runner.failed(
                f"{self._product.name} wrote more than {STREAM_LIMIT // 1024**2} MB", done.stderr
            )
        lines = read_lines(done.stdout)
        outcome = self._product.read(lines.events)
        if error := self._told(done, lines, outcome):
            error.spent = outcome.trace
            raise error
        return outcome.trace

    def _told(self, done: process.Completed, lines: Lines, outcome: Outcome) -> AttemptError | None:
        if outcome.failure is not None:
            return self._error(outcome.failure)
        if problem := _problem(done, lines, outcome):
            return self._unfinished(problem, done.returncode, lines.text + "\n" + done.stderr)
        return None

    async def check(self, request: Request) -> None:
        """One short run: nothing less tells whether it has a login, and knows the model."""
        await self.complete(request)

    async def close(self) -> None:
        """Holds nothing open."""

    async def _run(self, request: Request) -> process.Completed:
        try:
            prompt = prompt_text(request.messages)
        except (OSError, ValueError) as error:
            raise AttemptError("configuration", f"the prompt cannot be read: {error}") from None
        folder, words = self._words(request)
        try:
            return await self._runner.run(
                words, request, folder, request.timeout, stdin=prompt, limit=STREAM_LIMIT
            )
        except OSError as error:
            if not self._runner.finds(words[0], folder):
                raise self._missing(words[0]) from None
            raise AttemptError(
                "target", f"{self._product.name} cannot be started: {error}"
            ) from None

    def _words(self, request: Request) -> tuple[Path, tuple[str, ...]]:
        program = split(self._fields.command)
        folder, own = agent_command.at((*program, *self._fields.args), request, self._fields.cwd)
        own = split(own)
        return folder, (*own[: len(program)], *self._options, *own[len(program) :], *self._last)

    def _missing(self, program: str) -> TargetDead:
        advice = f"install it in the input `setup` (`{self._product.package}`), or name it in the target's `command`"
        return TargetDead(
            f"{self._product.name} is not installed: there is no command {program!r}", advice
        )

    def _error(self, failure: Failure) -> AttemptError:
        message = f"{self._product.name}: {failure.message}"
        if failure.severity == "dead":
            return TargetDead(message, self._login_hint())
        if failure.severity == "own":
            return AttemptError("target", message, self._runner.hint())
        return TransientError(message, limited=failure.severity == "limited")

    def _unfinished(self, problem: str, returncode: int, said: str) -> AttemptError:
        """A run that did not come to its end: what the command said outside of its stream tells
        why, if anything does."""
        message = agent_command.told(f"{self._product.name}: {problem}", said)
        lowered = said.lower()
        if returncode and any(words in lowered for words in _NO_LOGIN):
            return TargetDead(message, self._login_hint())
        hint = (
            "what it is made of may be missing; install it in the input `setup`"
            if returncode == _COMMAND_NOT_FOUND
            else ""
        )
        return AttemptError("target", message, hint or self._runner.hint())

    def _login_hint(self) -> str:
        return "; ".join(filter(None, (self._product.key_hint, self._runner.hint())))


#: How these programs say, before there is a stream, that they have no login.
_NO_LOGIN = (
    "no authentication",
    "not authenticated",
    "not logged in",
    "authentication token",
    "bad credentials",
    "/login",
    "invalid api key",
)


def _problem(done: process.Completed, lines: Lines, outcome: Outcome) -> str:
    """Why a run cannot be told from its stream; empty when it can."""
    if done.returncode:
        return f"the command {agent_command.ended(done.returncode)}"
    if lines.broken:
        return lines.broken
    if not outcome.ended:
        return "its stream ended before the run did" if lines.events else "it wrote no JSON stream"
    if not outcome.trace.output.strip() and not outcome.trace.tool_calls:
        return "it succeeded without an answer"
    return ""
