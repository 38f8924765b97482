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
from agentevals_action.model.trace import Trace
from agentevals_action.system import process
from agentevals_action.system.paths import Folder
from agentevals_action.targets.agents import command as agent_command
from agentevals_action.targets.agents.stream import Event, Failure, Lines, Outcome, read_lines
from agentevals_action.targets.base import Provider, ProviderContext, ProviderOptions, Request
from agentevals_action.targets.message_texts import prompt_text

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


def _split(command: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(shlex.split(command)) if isinstance(command, str) else tuple(command)


def _check_command(command: str | tuple[str, ...]) -> str | tuple[str, ...]:
    try:
        words = _split(command)
    except ValueError as error:
        raise ValueError(f"its quotes are wrong ({error})") from None
    if not words or not words[0].strip():
        raise ValueError("the command is empty; write the program")
    return command


#: Words, or a text that is split like a shell does; no shell runs it.
Command = Annotated[
    str | ListOf[str],
    AfterValidator(_check_command),
    Field(description="The program, with words before its options if it needs any."),
]


@dataclass(frozen=True)
class Product:
    """An agent: `package` is the command that installs it, `key_hint` the advice for a missing
    login, `read` converts its events. On its command line `words` follow the program, `last` are at
    the end."""

    name: str
    package: str
    key_hint: str
    read: Callable[[Sequence[Event]], Outcome]
    words: tuple[str, ...]
    last: tuple[str, ...] = ()


class AgentOptions(ProviderOptions):
    """The common fields of these agents' targets."""

    product: ClassVar[Product]
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "command": ("executable", "binary"),
        "args": ("arguments",),
    }

    command: Command
    model: NonEmpty | None = Field(
        None, description="The model, as the agent's own option names it; its default otherwise."
    )
    args: ListOf[str] = Field(
        (),
        description="More words for the command line. What the agent may do is its own default; "
        "what widens that stands here.",
    )
    cwd: agent_command.WorkingFolder = None
    env: agent_command.VariableNames = None

    def flags(self) -> Mapping[str, str | None]:
        """The options of the program with their values, if they have one."""
        return {"--model": self.model}

    def connect(self, context: ProviderContext) -> Provider:
        """The agent with its environment; AttemptError if it names a variable that the workflow
        does not pass on."""
        return _Agent(self, context)

    def variables(self) -> Sequence[str]:
        """The names of `env`: the agent expects them."""
        return self.env or ()

    def files(self, folder: Folder) -> Sequence[str]:
        """Words of the command that are files of the repository."""
        try:
            words = (*_split(self.command), *self.args)
            return agent_command.named_files(words, self.cwd, folder)
        except ValueError:  # a folder, or quotes, with `${{ }}` in it
            return ()


class _Agent(Provider):
    def __init__(self, options: AgentOptions, context: ProviderContext) -> None:
        self._product, self._options = options.product, options
        self._runner = agent_command.CommandRunner(options.env, context)

    async def complete(self, request: Request) -> Trace:
        done = await self._run(request)
        if done.timed_out:
            message = f"no answer within {request.timeout:g} s"
            raise self._runner.error(message, done.stderr, "timeout")
        if done.truncated:
            message = f"{self._product.name} wrote more than {STREAM_LIMIT // 1024**2} MB"
            raise self._runner.error(message, done.stderr)
        lines = read_lines(done.stdout)
        outcome = self._product.read(lines.events)
        error = None
        if outcome.failure is not None:
            error = self._stream_error(outcome.failure)
        elif problem := _find_problem(done, lines, outcome):
            error = self._command_error(problem, done.returncode, f"{lines.text}\n{done.stderr}")
        if error is not None:
            error.spent = outcome.trace
            raise error
        return outcome.trace

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
        options, product = self._options, self._product
        command = _split(options.command)
        folder, located = agent_command.locate((*command, *options.args), request, options.cwd)
        flags = [word for name, value in options.flags().items() if value for word in (name, value)]
        program, args = located[: len(command)], located[len(command) :]
        return folder, (*program, *product.words, *flags, *args, *product.last)

    def _stream_error(self, failure: Failure) -> AttemptError:
        message = f"{self._product.name}: {failure.message}"
        if failure.severity == "dead":
            return TargetDead(message, self._login_hint())
        if failure.severity == "own":
            return AttemptError("target", message, self._runner.hint)
        return TransientError(message, limited=failure.severity == "limited")

    def _command_error(self, problem: str, returncode: int, output: str) -> AttemptError:
        error = self._runner.error(f"{self._product.name}: {problem}", output)
        if returncode and any(words in output.lower() for words in _NO_LOGIN):
            return TargetDead(str(error), self._login_hint())
        if returncode == _COMMAND_NOT_FOUND:
            hint = "a program that it needs may be missing; install it in the input `setup`"
            return AttemptError("target", str(error), hint)
        return error

    def _login_hint(self) -> str:
        return "; ".join(filter(None, (self._product.key_hint, self._runner.hint)))


def _find_problem(done: process.Completed, lines: Lines, outcome: Outcome) -> str:
    """The reason why a stream is not a complete run; empty if it is."""
    if done.returncode:
        return f"the command {agent_command.describe_end(done.returncode)}"
    if lines.broken:
        return lines.broken
    if not outcome.ended:
        return "its stream ended before the run did" if lines.events else "it wrote no JSON stream"
    if not outcome.trace.has_answer:
        return "it succeeded without an answer"
    return ""
