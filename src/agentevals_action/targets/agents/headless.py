"""Command-line agents without a person: one run of the program for each call, with the prompt on
standard input and a JSON stream on standard output, which is read as it arrives."""

import asyncio
import logging
import re
import shlex
import signal
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import dropwhile
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from agentevals_action.errors import AttemptError, TargetDead
from agentevals_action.escaping import printable
from agentevals_action.formatting import cut_line, joined
from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.messages import Message
from agentevals_action.model.target import Provider, ProviderContext, Request
from agentevals_action.model.tools import ToolAccess
from agentevals_action.model.trace import Trace
from agentevals_action.system import process
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import read_resolved
from agentevals_action.system.isolation import give_folder
from agentevals_action.targets.agents.events import NO_LOGIN, Event, Stream
from agentevals_action.targets.message_texts import content_text, prompt_text
from agentevals_action.targets.programs.command import CommandLauncher, CommandTarget
from agentevals_action.validation.file_model import ListOf, NonEmpty, spelled
from agentevals_action.validation.json_values import replace_surrogates

log = logging.getLogger(__name__)

_CALL_SHOWN, _MESSAGE_SHOWN = 200, 500  # characters
#: Bytes of a stream, which contains every file that the agent read.
STREAM_LIMIT = 64 * 1024 * 1024
_MORE_CALLS = (
    "its stream does not contain the calls of its sub-agents, so that the tool calls are unknown"
)
_SYSTEM_LIMIT = 100_000  # bytes; a word of a command line may have 128 KiB
#: A variable of a key, as these programs name it: which one depends on whose model they ask.
_KEY = re.compile(r"\b[A-Z][A-Z0-9_]*_(?:KEY|TOKEN)\b")


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
    spelled(
        "command",
        "executable",
        "binary",
        description="The program, with words before its options if it needs any.",
    ),
]


class AgentTarget(CommandTarget):
    """A command-line agent: the fields of its target, its arguments, the meaning of its events.

    `package` is the command that installs it, `key_hint` the advice for a missing login.
    `system_option` is a part of the argument that adds a system prompt to the agent's own.
    `last_events` are the types of the events of which each complete run has one.
    `servers_option` is a part of the arguments that start MCP servers of its own.
    `events_variable` names a file to which the agent writes more events. `refusal` finds the calls
    on standard error that it refused, which are not in its stream."""

    title: ClassVar[str]
    package: ClassVar[str]
    key_hint: ClassVar[str]
    last_events: ClassVar[tuple[str, ...]] = ("result",)
    system_option: ClassVar[str] = ""
    servers_option: ClassVar[str]
    events_variable: ClassVar[str] = ""
    refusal: ClassVar[re.Pattern[str] | None] = None
    skill_folders: ClassVar[tuple[str, ...]] = (".agents/skills",)

    command: Command
    model: NonEmpty | None = Field(
        None, description="The model, as the agent's own option names it; its default otherwise."
    )
    args: ListOf[str] = spelled(
        "args",
        "arguments",
        default=(),
        description="More words for the command line. What the agent may do is its own default; "
        "what widens that stands here.",
    )

    @abstractmethod
    def arguments(self, args: Sequence[str], system: str) -> Sequence[str]:
        """The words after the program: the agent's own, `args` of the target, and words for the
        system prompt, which is empty for agents without a `system_option`."""

    @abstractmethod
    def read(self, events: Sequence[Event]) -> Trace:
        """The trace of a run, as far as the events show it; ValueError if one is not valid."""

    @abstractmethod
    def find_error(self, events: Sequence[Event]) -> AttemptError | None:
        """The error with which the run ended, if the events report one."""

    def find_retry(self, event: Event) -> AttemptError | None:  # noqa: ARG002  # of the interface
        """The error after which the agent asks its model again, if an event reports one."""
        return None

    @abstractmethod
    def tool_arguments(
        self, access: ToolAccess, folder: Path, variables: Mapping[str, str]
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        """More words (`args`) and variables for a call, with which the agent has the MCP servers of
        `access` alone, may call their tools, and finds commands; files for it are in `folder`.
        `variables` are those of the target."""

    def refuse_commands(self) -> tuple[str, str] | None:
        """None: each call starts the agent."""
        return None

    def find_own_servers(self) -> Sequence[str]:
        """The words of `args` that name MCP servers."""
        return [word for word in self.args if self.servers_option in word]

    def priced_model(self) -> str | None:
        """The model, if it is named."""
        return self.model

    def model_arguments(self) -> Sequence[str]:
        """The option for the model, if it is named."""
        return ("--model", self.model) if self.model else ()

    def connect(self, context: ProviderContext) -> Provider:
        """The agent with its environment; AttemptError if it names a variable that the workflow
        does not pass on."""
        return _Agent(self, context)

    def named_files(self, folder: Folder) -> Sequence[NamedFile]:
        """Words of the command that are files of the repository."""
        return self.files_among((*_split(self.command), *self.args), folder)


class _Agent(Provider):
    def __init__(self, target: AgentTarget, context: ProviderContext) -> None:
        self._target, self._title = target, target.title
        # The agent is no program of the repository, and what it runs belongs to its workspace.
        children = replace(context.children, packages={})
        self._runner = CommandLauncher(target, replace(context, children=children))
        self._events_variable = target.events_variable
        # The workflow may want the file elsewhere.
        if self._events_variable in context.children.allowed:
            self._events_variable = ""

    async def complete(self, request: Request) -> Trace:
        target, stream = self._target, Stream()
        with self._runner.call_folder() as folder:
            variables = self._runner.tool_variables(request, folder)
            more_words: Sequence[str] = ()
            if request.access:
                more_words, own_variables = target.tool_arguments(
                    request.access, folder, self._runner.environment
                )
                variables |= own_variables
            give_folder(folder, self._runner.choose_user(request))
            path = folder / "events.jsonl"
            if self._events_variable:
                variables[self._events_variable] = str(path)
            done = await self._run(request, stream, more_words, variables)
            stream.add(b"\n")
            with suppress(OSError):  # the figures in it stay unknown
                stream.add(read_resolved(path, STREAM_LIMIT) + b"\n")
        try:
            trace = target.read(stream.events)
        except ValueError as error:
            raise self._runner.error(f"{self._title}: {error}", done.stderr) from None
        if failure := self._find_error(done, stream, trace):
            failure.spent = trace
            raise failure
        refused = target.refusal.findall(done.stderr) if target.refusal else ()
        warnings = [f"the agent refused a call: {cut_line(call, _CALL_SHOWN)}" for call in refused]
        if trace.tool_calls is None:
            warnings.append(_MORE_CALLS)
        return replace(trace, warnings=tuple(dict.fromkeys(warnings)))

    async def _run(
        self,
        request: Request,
        stream: Stream,
        more_words: Sequence[str],
        variables: Mapping[str, str],
    ) -> process.Completed:
        try:
            system, prompt = self._prompts(request.messages)
        except (OSError, ValueError) as error:
            raise AttemptError("configuration", f"the prompt cannot be read: {error}") from None
        target, command = self._target, _split(self._target.command)
        located = self._runner.located((*command, *target.args), request)
        args = (*located[len(command) :], *more_words)
        words = (*located[: len(command)], *target.arguments(args, system))
        program = self._runner.program(words, request, variables)
        is_refused = asyncio.Event()

        def read(fd: int, data: bytes) -> None:
            for event in stream.add(data) if fd == 1 else ():
                if retry := target.find_retry(event):
                    line = printable(f"{self._title}: {retry}", _MESSAGE_SHOWN)
                    stream.text.append(line)
                    log.warning("%s", line)
                    if isinstance(retry, TargetDead):  # it would ask in vain until its time-out
                        is_refused.set()
                        running.cancel()

        running = asyncio.create_task(
            process.run(
                program, timeout=request.timeout, stdin=prompt, limit=STREAM_LIMIT, on_output=read
            )
        )
        try:
            return await running
        except asyncio.CancelledError:
            if is_refused.is_set():
                return process.Completed(-signal.SIGTERM, b"", b"")
            raise
        except OSError as error:
            if self._runner.finds(words[0], program.folder):
                raise program.start_error("target", self._title, error) from None
            raise TargetDead(
                f"{self._title} is not installed: there is no command {words[0]!r}",
                f"install it in the input `setup` (`{target.package}`), or name it in the "
                "target's `command`",
            ) from None

    def _prompts(self, messages: Sequence[Message]) -> tuple[str, str]:
        """The text for the agent's system prompt, and the prompt with the other messages: with all
        of them if there is no such text, or if no argument can carry it."""
        target = self._target
        asked = tuple(dropwhile(lambda message: message.role == "system", messages))
        system = "\n\n".join(map(content_text, messages[: len(messages) - len(asked)]))
        # https://man7.org/linux/man-pages/man2/execve.2.html
        fits = len(system.encode("utf-8", "replace")) <= _SYSTEM_LIMIT and "\0" not in system
        is_free = not any(target.system_option in word for word in target.args)
        if target.system_option and is_free and asked and fits:
            return replace_surrogates(system), prompt_text(asked)
        return "", prompt_text(messages)

    def _find_error(
        self, done: process.Completed, stream: Stream, trace: Trace
    ) -> AttemptError | None:
        """The error that the stream of a run reports, or the error of its end. At a time-out only a
        refused login counts: some agents repeat it until they are ended."""
        reported = self._target.find_error(stream.events)
        if reported and (not done.timed_out or isinstance(reported, TargetDead)):
            message = cut_line(str(reported), _MESSAGE_SHOWN) or "it gave no reason"
            reported.args = (f"{self._title}: {message}",)
            is_dead = isinstance(reported, TargetDead)
            hint = self._login_hint(message) if is_dead else self._runner.hint
            reported.hint = reported.hint or hint
            return reported
        output = "\n".join([*stream.text, done.stderr])
        if done.failure:
            kind = "timeout" if done.timed_out else "target"
            error = self._runner.error(f"{self._title} {done.failure}", output, kind)
            if NO_LOGIN.search(output) and done.returncode and not done.timed_out:
                return TargetDead(str(error), self._login_hint(output))
            return error
        problem = ""
        if stream.broken:
            problem = stream.broken
        elif not stream.events:
            problem = "it wrote no JSON stream"
        elif not any(event.type in self._target.last_events for event in stream.events):
            problem = "its stream ended before the run did"
        elif not trace.has_answer:
            problem = "it succeeded without an answer"
        return self._runner.error(f"{self._title}: {problem}", output) if problem else None

    def _login_hint(self, output: str) -> str:
        hint = self._target.key_hint
        if keys := tuple(dict.fromkeys(_KEY.findall(output))):
            hint = f"name {joined(keys, 'or')} in the input `env` (`--env`)"
        return "; ".join(filter(None, (hint, self._runner.hint)))
