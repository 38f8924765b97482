"""`cli`: an agent that is a command. The prompt goes in by placeholder or standard input, the
answer comes out by file or standard output. With `serve` the command stays: it reads a question
from each line and answers with a line."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from agentevals_action.errors import AttemptError, TargetDead
from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.target import Provider, ProviderContext, Request
from agentevals_action.model.tools import ToolAccess
from agentevals_action.model.trace import Trace
from agentevals_action.system import process
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import read_resolved
from agentevals_action.system.isolation import give_folder
from agentevals_action.system.redaction import redact
from agentevals_action.targets.dialects.envelope import read_reply
from agentevals_action.targets.message_texts import prompt_text
from agentevals_action.targets.otel.receiver import CONTENT_VARIABLES, SpanReceiver
from agentevals_action.targets.otel.span_trace import add_trace, read_trace
from agentevals_action.targets.programs import placeholders
from agentevals_action.targets.programs.command import (
    SKILL_FOLDERS,
    CommandLauncher,
    CommandTarget,
)
from agentevals_action.targets.programs.worker_client import WorkerClient
from agentevals_action.validation.file_model import FileModel, spelled

_MEGABYTE = 1024**2
#: The placeholders without which the prompt is on standard input.
_PROMPTS = frozenset({"PROMPT", "PROMPT_FILE"})


class Healthcheck(FileModel):
    """A command that must succeed once before the target is used."""

    command: placeholders.Command = Field(
        description="The command: a list of words, or a script of `sh`."
    )
    cwd: str | None = Field(None, description="The command's folder; the target's by default.")
    timeout_seconds: float = Field(60, gt=0, description="Seconds that it may take.")

    @model_validator(mode="before")
    @classmethod
    def _read_command(cls, value: Any) -> Any:
        return {"command": value} if isinstance(value, str | list | tuple) else value


class Cli(CommandTarget):
    """An agent behind a command."""

    provider: ClassVar[str] = "cli"
    skill_folders: ClassVar[tuple[str, ...]] = SKILL_FOLDERS

    command: placeholders.Command = Field(
        description="The command: a list of words, or a script of `sh`. Placeholders: {PROMPT}, "
        "{PROMPT_FILE}, {OUTPUT_FILE}, {FILES}, {EVAL_ID}, {ATTEMPT}, and {MCP_CONFIG}, a file "
        "with the MCP servers of the suite's tools. Without one for the prompt it comes on "
        "standard input, without {OUTPUT_FILE} the answer is standard output."
    )
    files_format: Annotated[str, AfterValidator(placeholders.check_format)] = spelled(
        "files_format",
        "attachments_format",
        default="{path}",
        description="The form of each file in {FILES}, with {path} and {basename}, as in "
        "`--file {path}`.",
    )
    serve: bool = Field(
        False,
        description="Start the command once for many calls: each line of its standard input is a "
        "JSON object with `call`, `prompt`, `messages`, `test_id`, `conversation_id`, `metadata`, "
        "`workspace` and `mcp`; it answers with one line, `{call, reply}` or `{call, error}`.",
    )
    trace: Literal["otel"] | None = Field(
        None,
        description="`otel`: the tool calls, tokens and durations are read from OpenTelemetry "
        "spans, which the agent sends to OTEL_EXPORTER_OTLP_ENDPOINT.",
    )
    healthcheck: Healthcheck | None = Field(
        None,
        description="A command that must succeed once before the target is used.",
    )

    @model_validator(mode="after")
    def _check_serve(self) -> Self:
        used = sorted(placeholders.used_in(self.command))
        if self.serve and (used or "files_format" in self.model_fields_set):
            field = f"{{{used[0]}}}" if used else "`files_format`"
            raise ValueError(
                f"with `serve` the command gets its prompts on standard input, and {field} has no "
                "meaning; leave it out"
            )
        if self.serve and self.trace:
            raise ValueError(
                "`trace` needs a process for each sample, which `serve` has not; leave one out"
            )
        return self

    def refuse_commands(self) -> tuple[str, str] | None:
        """Only with `serve`."""
        return super().refuse_commands() if self.serve else None

    def connect(self, context: ProviderContext) -> Provider:
        """The command with its environment; AttemptError if it names a variable that the workflow
        does not pass on."""
        return _Connected(self, context)

    def named_files(self, folder: Folder) -> Sequence[NamedFile]:
        """Words of the command, or their part after `=`, that are files of the repository."""
        return self.files_among(self.command, folder)

    def missing_script(self, folder: Folder) -> Path | None:
        """The file that its command runs, if there is no such file."""
        return self.script_missing_in(self.command, folder)


class _Connected(Provider):
    def __init__(self, target: Cli, context: ProviderContext) -> None:
        self._target, self._workers = target, context.workers
        self._runner = CommandLauncher(target, context)
        self._client = WorkerClient(self._runner, context.workers)
        self._placeholders = placeholders.used_in(target.command)
        self._content_variables = {
            name: value
            for name, value in CONTENT_VARIABLES.items()
            if name not in context.children.allowed
        }
        self._lock = asyncio.Lock()
        self._is_healthy = target.healthcheck is None
        self._failed_check: TargetDead | None = None

    async def wait_until_ready(self, request: Request) -> None:
        """Runs the healthcheck if it did not run yet; TargetDead if it failed."""
        check = self._target.healthcheck
        async with self._lock:
            if self._failed_check is not None:
                raise self._failed_check
            if self._is_healthy or check is None:
                return
            try:
                words = placeholders.split_command(check.command)
                folder = self._runner.declared_folder(request, check.cwd)
                program = self._runner.program(words, request, folder=folder)
                await process.run_checked(
                    "the healthcheck", program, kind="target", timeout=check.timeout_seconds
                )
            except AttemptError as error:
                self._failed_check = TargetDead(str(error), error.hint)
                raise self._failed_check from None
            self._is_healthy = True

    async def complete(self, request: Request) -> Trace:
        if self._target.serve:
            words = placeholders.split_command(self._located(request))
            return await self._client.ask(self._runner.program(words, request), request)
        with self._runner.call_folder() as folder:
            if self._target.trace is None:
                return await self._answer(request, folder, {})
            return await self._traced_answer(request, folder)

    async def check(self, request: Request) -> str:
        """What the healthcheck showed."""
        if self._target.healthcheck is None:
            return await super().check(request)
        return "its healthcheck succeeds; it was not asked"

    async def close(self) -> None:
        """Ends the workers."""
        await self._workers.close()

    def _command(
        self, request: Request, folder: Path
    ) -> tuple[Sequence[str], str, Mapping[str, str]]:
        """The words to run, the standard input and the variables of a call, whose files are in the
        folder."""
        target, used = self._target, self._placeholders
        paths = {name: folder / file for name, file in placeholders.FILES.items()}
        attached: Sequence[str] = ()
        try:
            prompt = prompt_text(request.messages)
            if "FILES" in used:
                attached = placeholders.attached_files(request.messages, folder)
        except (OSError, ValueError) as error:
            raise AttemptError("configuration", f"the prompt cannot be read: {error}") from None
        if "PROMPT_FILE" in used:
            paths["PROMPT_FILE"].write_bytes(prompt.encode("utf-8", "replace"))
        if "MCP_CONFIG" in used:
            access = request.access or ToolAccess("", "")
            paths["MCP_CONFIG"].write_text(access.config(), "utf-8")
        tool_variables = self._runner.tool_variables(request, folder)
        if tool_variables or used & {*placeholders.FILES, "FILES"}:
            give_folder(folder, self._runner.choose_user(request))
        values = {name: str(path) for name, path in paths.items()}
        values |= {"PROMPT": prompt, "EVAL_ID": request.eval_id, "ATTEMPT": str(request.attempt)}
        files = placeholders.file_words(target.files_format, attached)
        words, variables = placeholders.fill(self._located(request), values, files)
        return words, "" if used & _PROMPTS else prompt, {**variables, **tool_variables}

    async def _answer(self, request: Request, folder: Path, variables: Mapping[str, str]) -> Trace:
        words, stdin, call_variables = self._command(request, folder)
        program = self._runner.program(words, request, {**variables, **call_variables})
        try:
            done = await process.run_checked(
                "the command", program, kind="target", timeout=request.timeout, stdin=stdin
            )
        except AttemptError as error:
            if "PROMPT" in self._placeholders and "Argument list too long" in str(error):
                error.hint = "use {PROMPT_FILE} or standard input for long prompts"
            raise
        text = done.stdout
        if "OUTPUT_FILE" in self._placeholders:
            text = _read_output(folder / placeholders.FILES["OUTPUT_FILE"])
        if not text.strip():
            raise self._runner.error("the command succeeded without an answer", done.stderr)
        try:
            return read_reply(text, request.messages)
        except ValueError as error:
            raise self._runner.error(str(error), done.stderr) from None

    async def _traced_answer(self, request: Request, folder: Path) -> Trace:
        """The answer with the trace of the agent's spans. A failed call is paid for, too."""
        receiver = SpanReceiver()
        try:
            async with receiver.listen():
                variables = {**self._content_variables, **receiver.environment}
                reply = await self._answer(request, folder, variables)
        except OSError as error:
            problem = f"the receiver of its spans cannot listen: {error.strerror}"
            raise AttemptError("target", problem) from None
        except AttemptError as error:
            with contextlib.suppress(AttemptError):  # the first error is the cause
                error.spent = read_trace(receiver.spans())
            raise
        return await asyncio.to_thread(lambda: add_trace(reply, receiver.spans()))

    def _located(self, request: Request) -> str | Sequence[str]:
        command = self._target.command
        return command if isinstance(command, str) else self._runner.located(command, request)


def _read_output(path: Path) -> str:
    """The content of the file that a command wrote. It can put anything there: only a regular file
    is read, and no link is followed."""
    limit = process.OUTPUT_LIMIT
    try:
        data = read_resolved(path, limit + 1)
    except FileNotFoundError:
        problem = "the command succeeded, but did not write {OUTPUT_FILE}"
        raise AttemptError("target", problem) from None
    except OSError as error:
        problem = f"{{OUTPUT_FILE}} cannot be read: {error.strerror}"
        raise AttemptError("target", problem) from None
    if len(data) > limit:
        raise AttemptError("target", f"{{OUTPUT_FILE}} is over {limit // _MEGABYTE} MB")
    return redact(data.decode("utf-8", "replace"))
