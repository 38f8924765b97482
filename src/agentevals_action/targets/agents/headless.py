"""Command-line agents without a person: one run of the program for each call, with the prompt on
standard input and a JSON stream on standard output, which is read as it arrives."""

import re
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import dropwhile
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.formatting import cut_line
from agentevals_action.model.suite import Message
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.file_model import ListOf, NonEmpty
from agentevals_action.model.validation.json_values import replace_surrogates
from agentevals_action.system import process
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import open_resolved
from agentevals_action.system.isolation import give_folder
from agentevals_action.targets.agents import command as agent_command
from agentevals_action.targets.agents.stream import (
    Failure,
    StreamContent,
    StreamEvent,
    StreamReader,
)
from agentevals_action.targets.base import Provider, ProviderContext, ProviderOptions, Request
from agentevals_action.targets.message_texts import content_text, prompt_text

_SHOWN = 200  # characters of a refused call
#: Bytes of a stream, which contains every file that the agent read.
STREAM_LIMIT = 64 * 1024 * 1024
_SYSTEM_LIMIT = 100_000  # bytes; a word of a command line may have 128 KiB
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
class Telemetry:
    """A file that an agent writes besides its stream: `variable` names it for the agent, `add`
    completes a trace with its content."""

    variable: str
    add: Callable[[Trace, bytes], Trace]


@dataclass(frozen=True)
class Product:
    """An agent: `package` is the command that installs it, `key_hint` the advice for a missing
    login, `read` converts its events. On its command line `words` follow the program, `last` are at
    the end. `refused` finds the calls on standard error that it refused, which are not in its
    stream."""

    name: str
    package: str
    key_hint: str
    read: Callable[[Sequence[StreamEvent]], StreamContent]
    words: tuple[str, ...]
    last: tuple[str, ...] = ()
    refused: re.Pattern[str] | None = None
    telemetry: Telemetry | None = None


class AgentOptions(ProviderOptions):
    """The common fields of these agents' targets."""

    runs_programs: ClassVar[bool] = True
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
    system_prompt: NonEmpty | None = Field(
        None, description="A system message before those of each test."
    )
    cwd: agent_command.WorkingFolder = None
    env: agent_command.VariableNames = None

    def priced_model(self) -> str | None:
        """The model, if it is named."""
        return self.model

    def flags(self) -> Mapping[str, str | None]:
        """The options of the program with their values, if they have one."""
        return {"--model": self.model}

    def first_message(self) -> str | None:
        """The system message before those of each test."""
        return self.system_prompt

    def system_words(self, text: str) -> Sequence[str]:  # noqa: ARG002  # of the interface
        """The words of the command line that give the agent a system prompt besides its own; empty
        if the program has none, or `args` already uses it."""
        return ()

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
        with self._telemetry_file(request) as telemetry:
            run = await self._run(request, telemetry)
            run.reader.end()
            outcome = self._product.read(run.reader.events)
            if telemetry is not None and self._product.telemetry is not None:
                trace = self._product.telemetry.add(outcome.trace, _read_telemetry(telemetry))
                outcome = replace(outcome, trace=trace)
        if error := self._find_error(run, outcome, request.timeout):
            error.spent = outcome.trace
            raise error
        refused = self._product.refused.findall(run.done.stderr) if self._product.refused else ()
        warnings = [f"the agent refused a call: {cut_line(each, _SHOWN)}" for each in refused]
        return replace(outcome.trace, warnings=tuple(dict.fromkeys(warnings)))

    def _find_error(
        self, run: "_Run", outcome: StreamContent, timeout: float
    ) -> AttemptError | None:
        done, reader, name = run.done, run.reader, self._product.name
        if done.timed_out:
            # With a wrong key, some try again until the end of their time.
            if outcome.failure and outcome.failure.severity == "dead":
                return self._stream_error(outcome.failure)
            problem = f"no answer within {timeout:g} s: {name} did not end"
            return self._runner.error(problem, done.stderr, "timeout")
        if done.truncated:
            problem = f"{name} wrote more than {STREAM_LIMIT // 1024**2} MB"
            return self._runner.error(problem, done.stderr)
        if outcome.failure:
            return self._stream_error(outcome.failure)
        if problem := _find_problem(done, reader, outcome):
            output = "\n".join([*reader.text, done.stderr])
            return self._command_error(problem, done.returncode, output)
        return None

    async def _run(self, request: Request, telemetry: Path | None) -> "_Run":
        try:
            system, prompt = self._prompts(request.messages)
        except (OSError, ValueError) as error:
            raise AttemptError("configuration", f"the prompt cannot be read: {error}") from None
        folder, words = self._locate(request, system)
        reader = StreamReader()

        def read(stream: int, data: bytes) -> None:
            if stream == 1:
                reader.add(data)

        product, variables = self._product, {}
        if telemetry is not None and product.telemetry is not None:
            variables[product.telemetry.variable] = str(telemetry)
        try:
            completed = await self._runner.run(
                words,
                request,
                folder,
                request.timeout,
                stdin=prompt,
                variables=variables,
                limit=STREAM_LIMIT,
                on_output=read,
            )
        except OSError as error:
            if self._runner.finds(words[0], folder):
                raise AttemptError("target", f"{product.name} cannot be started: {error}") from None
            raise TargetDead(
                f"{product.name} is not installed: there is no command {words[0]!r}",
                f"install it in the input `setup` (`{product.package}`), or name it in the "
                "target's `command`",
            ) from None
        return _Run(completed, reader)

    @contextmanager
    def _telemetry_file(self, request: Request) -> Iterator[Path | None]:
        """The file for the telemetry of one run; None if the agent has none, or writes its
        telemetry where the workflow says."""
        telemetry = self._product.telemetry
        if telemetry is None or self._runner.has(telemetry.variable):
            yield None
            return
        with tempfile.TemporaryDirectory(
            prefix="agentevals-", dir=self._runner.scratch, ignore_cleanup_errors=True
        ) as folder:
            give_folder(Path(folder), self._runner.user_of(request))
            yield Path(folder).resolve() / "telemetry.jsonl"

    def _prompts(self, messages: Sequence[Message]) -> tuple[Sequence[str], str]:
        """The words that give the agent the system messages at the beginning, and the prompt with
        the other messages: with all of them if there are no such words."""
        if text := self._options.first_message():
            messages = (Message("system", text), *messages)
        asked = tuple(dropwhile(lambda message: message.role == "system", messages))
        count = len(messages) - len(asked)
        text = "\n\n".join(content_text(message) for message in messages[:count])
        # What no command line can carry: https://man7.org/linux/man-pages/man2/execve.2.html
        fits = len(text.encode("utf-8", "replace")) <= _SYSTEM_LIMIT and "\0" not in text
        usable = text and asked and fits
        words = self._options.system_words(replace_surrogates(text)) if usable else ()
        return words, prompt_text(asked if words else messages)

    def _locate(self, request: Request, system: Sequence[str]) -> tuple[Path, tuple[str, ...]]:
        options, product = self._options, self._product
        command = _split(options.command)
        folder, located = self._runner.locate((*command, *options.args), request, options.cwd)
        flags = [word for name, value in options.flags().items() if value for word in (name, value)]
        program, args = located[: len(command)], located[len(command) :]
        return folder, (*program, *product.words, *flags, *args, *system, *product.last)

    def _stream_error(self, failure: Failure) -> AttemptError:
        message = f"{self._product.name}: {failure.message}"
        if failure.severity == "dead":
            return TargetDead(message, self._login_hint())
        if failure.severity == "own":
            return AttemptError("target", message, self._runner.hint)
        limited = failure.severity == "limited"
        return TransientError(message, failure.retry_after, limited=limited)

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


@dataclass(frozen=True)
class _Run:
    """A run of the program, and the stream that it wrote."""

    done: process.Completed
    reader: StreamReader


def _read_telemetry(path: Path) -> bytes:
    """The content of a telemetry file; empty if there is no such file. The agent can put anything
    there: only a regular file is read, and no link is followed."""
    try:
        with open_resolved(path) as file:
            return file.read(STREAM_LIMIT)
    except OSError:  # its figures stay unknown
        return b""


def _find_problem(done: process.Completed, reader: StreamReader, outcome: StreamContent) -> str:
    """The reason why a stream is not a complete run; empty if it is."""
    if done.returncode:
        return f"the command {agent_command.describe_end(done.returncode)}"
    if reader.broken:
        return reader.broken
    if not outcome.ended:
        return "its stream ended before the run did" if reader.events else "it wrote no JSON stream"
    if not outcome.trace.has_answer:
        return "it succeeded without an answer"
    return ""
