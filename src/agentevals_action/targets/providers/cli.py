"""`cli`: an agent that is a command. The prompt goes in by placeholder or standard input, the
answer comes out by file or standard output. With `serve` the command stays: it reads a question
from each line and answers with a line."""

import asyncio
import contextlib
import errno
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from agentevals_action.errors import AttemptError, TargetDead
from agentevals_action.model.messages import wire_messages
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.file_model import FileModel, ListOf
from agentevals_action.system import process
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.isolation import give_folder
from agentevals_action.system.redaction import redact
from agentevals_action.system.start_errors import describe_start
from agentevals_action.targets.agents import command as agent_command
from agentevals_action.targets.agents import placeholders
from agentevals_action.targets.agents.call_files import (
    FILE_NAMES,
    CallFiles,
    call_files,
    needs_folder,
)
from agentevals_action.targets.agents.worker_protocol import Answers
from agentevals_action.targets.base import Provider, ProviderContext, ProviderOptions, Request
from agentevals_action.targets.message_texts import prompt_text
from agentevals_action.targets.otel.receiver import CONTENT_VARIABLES, SpanReceiver
from agentevals_action.targets.otel.span_trace import add_trace, read_trace
from agentevals_action.targets.replies.envelope import read_reply

#: Words, or a script of `sh`.
Command = Annotated[str | ListOf[str], AfterValidator(placeholders.check)]

_MEGABYTE = 1024**2
#: The placeholders without which the prompt is on standard input.
_PROMPTS = ("PROMPT", "PROMPT_FILE", "MESSAGES_FILE")


class Healthcheck(FileModel):
    """A command that must succeed once before the target is used."""

    command: Command = Field(description="The command: a list of words, or a script of `sh`.")
    cwd: str | None = Field(None, description="The command's folder; the target's by default.")
    timeout_seconds: float = Field(60, gt=0, description="Seconds that it may take.")

    @model_validator(mode="before")
    @classmethod
    def _read_command(cls, value: Any) -> Any:
        return {"command": value} if isinstance(value, str | list | tuple) else value


class Cli(ProviderOptions):
    """An agent behind a command."""

    provider: ClassVar[str] = "cli"
    runs_programs: ClassVar[bool] = True
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {"files_format": ("attachments_format",)}

    command: Command = Field(
        description="The command: a list of words, or a script of `sh`. Placeholders: {PROMPT}, "
        "{PROMPT_FILE}, {MESSAGES_FILE} (the messages as JSON), {OUTPUT_FILE}, "
        "{FILES}, {EVAL_ID}, {ATTEMPT}. Without one for the prompt it comes on standard input, "
        "without {OUTPUT_FILE} the answer is standard output."
    )
    cwd: agent_command.WorkingFolder = None
    env: agent_command.VariableNames = None
    files_format: Annotated[str, AfterValidator(placeholders.check_format)] = Field(
        "{path}",
        description="The form of each file in {FILES}, with {path} and {basename}, as in "
        "`--file {path}`.",
    )
    serve: bool = Field(
        False,
        description="Start the command once for many calls: each line of its standard input is a "
        "JSON object with `call`, `prompt`, `messages`, `test_id`, `conversation_id`, `metadata` "
        "and `workspace`; it answers with one line, `{call, reply}` or `{call, error}`.",
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
    def _check_placeholders(self) -> Self:
        used = [name for name in placeholders.NAMES if placeholders.uses(self.command, name)]
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

    def connect(self, context: ProviderContext) -> Provider:
        """The command with its environment; AttemptError if it names a variable that the workflow
        does not pass on."""
        return _Connected(self, context)

    def variables(self) -> Sequence[str]:
        """The names of `env`: the agent expects them."""
        return self.env or ()

    def files(self, folder: Folder) -> Sequence[str]:
        """Words of the command, or their part after `=`, that are files of the repository."""
        command = self.command
        try:
            words = shlex.split(command, comments=True) if isinstance(command, str) else command
            return agent_command.named_files(words, self.cwd, folder)
        except ValueError:  # a folder with `${{ }}`, or quotes that only a shell understands
            return ()


class _Connected(Provider):
    def __init__(self, options: Cli, context: ProviderContext) -> None:
        self._options = options
        self._runner = agent_command.CommandRunner(options.env, context)
        self._workers, self._answers = context.workers, Answers(self._runner, context.workers)
        self._content_variables = {
            name: value for name, value in CONTENT_VARIABLES.items() if name not in context.allowed
        }
        self._lock = asyncio.Lock()
        self._is_healthy = False
        self._failed_check: TargetDead | None = None

    async def complete(self, request: Request) -> Trace:
        deadline = asyncio.get_running_loop().time() + request.timeout
        await self._check_health(request)
        if self._options.serve:
            return await self._ask_worker(request)
        with call_files(self._runner.scratch, self._options.command) as files:
            if self._options.trace is None:
                return await self._answer(request, files, deadline)
            return await self._traced_answer(request, files, deadline)

    async def _answer(
        self,
        request: Request,
        files: CallFiles,
        deadline: float,
        variables: Mapping[str, str] | None = None,
    ) -> Trace:
        remaining = max(deadline - asyncio.get_running_loop().time(), 0)
        done = await self._run(request, files, remaining, variables or {})
        text = done.stdout
        if placeholders.uses(self._options.command, "OUTPUT_FILE"):
            data = files.read("OUTPUT_FILE", process.OUTPUT_LIMIT)
            if data is None:
                problem = "the command succeeded, but did not write {OUTPUT_FILE}"
                raise AttemptError("target", problem)
            text = redact(data.decode("utf-8", "replace"))
        if not text.strip():
            raise self._runner.error("the command succeeded without an answer", done.stderr)
        try:
            return read_reply(text, request.messages)
        except ValueError as error:
            raise self._runner.error(str(error), done.stderr) from None

    async def _ask_worker(self, request: Request) -> Trace:
        options = self._options
        folder, command = self._runner.locate(options.command, request, options.cwd)
        words = placeholders.words_of(command)
        program = self._runner.program(words, request, folder, request.workspace)
        try:
            return await self._answers.answer(program, request)
        except OSError as error:
            reason, hint = describe_start(error, words[0], folder)
            problem = f"the command cannot be started: {reason}"
            raise AttemptError("target", problem, hint) from None

    async def close(self) -> None:
        """Ends the workers."""
        await self._workers.close()

    async def _traced_answer(self, request: Request, files: CallFiles, deadline: float) -> Trace:
        """The answer with the trace of the agent's spans. A failed call is paid for, too."""
        receiver = SpanReceiver()
        try:
            async with receiver.listen():
                variables = {**self._content_variables, **receiver.environment}
                reply = await self._answer(request, files, deadline, variables)
        except AttemptError as error:
            with contextlib.suppress(AttemptError, ValueError):  # the first error is the cause
                error.spent = read_trace(await receiver.spans())
            raise
        return await asyncio.to_thread(add_trace, reply, await receiver.spans(), receiver.advice)

    async def check(self, request: Request) -> str:
        """Runs the healthcheck."""
        if self._options.healthcheck is None:
            return await super().check(request)
        await self._check_health(request)
        return "its healthcheck succeeds; it was not asked"

    async def _run(
        self, request: Request, files: CallFiles, timeout: float, extra: Mapping[str, str]
    ) -> process.Completed:
        options = self._options
        folder, command = self._runner.locate(options.command, request, options.cwd)
        prompt_file, messages_file = files.path("PROMPT_FILE"), files.path("MESSAGES_FILE")
        try:
            prompt = prompt_text(request.messages)
            uses_files = placeholders.uses(command, "FILES")
            paths = (
                placeholders.attached_files(request.messages, files.folder) if uses_files else ()
            )
        except (OSError, ValueError) as error:
            raise AttemptError("configuration", f"the prompt cannot be read: {error}") from None
        if placeholders.uses(command, "PROMPT_FILE"):
            prompt_file.write_text(prompt, encoding="utf-8", errors="replace", newline="")
        if placeholders.uses(command, "MESSAGES_FILE"):
            messages_file.write_text(json.dumps(wire_messages(request.messages)), encoding="utf-8")
        if needs_folder(command):
            give_folder(files.folder, self._runner.user_of(request))
        has_prompt = any(placeholders.uses(command, name) for name in _PROMPTS)
        values = {name: str(files.path(name)) for name in FILE_NAMES}
        values |= {"PROMPT": prompt, "EVAL_ID": request.eval_id, "ATTEMPT": str(request.attempt)}
        words, variables = placeholders.fill(
            command, values, placeholders.file_words(options.files_format, paths)
        )
        variables = {**extra, **variables}
        stdin = "" if has_prompt else prompt
        done = await self._start(words, request, folder, timeout, stdin=stdin, variables=variables)
        if done.timed_out:
            problem = f"no answer within {request.timeout:g} s"
            raise self._runner.error(problem, done.stderr, "timeout")
        if done.returncode:
            problem = f"the command {agent_command.describe_end(done.returncode)}"
            raise self._runner.error(problem, done.stderr or done.stdout)
        if done.truncated:
            problem = f"the command wrote more than {process.OUTPUT_LIMIT // _MEGABYTE} MB"
            raise self._runner.error(problem, done.stderr)
        return done

    async def _start(
        self,
        words: Sequence[str],
        request: Request,
        folder: Path,
        timeout: float,
        **inputs: Any,
    ) -> process.Completed:
        try:
            return await self._runner.run(words, request, folder, timeout, **inputs)
        except OSError as error:
            reason, hint = describe_start(error, words[0], folder)
            if error.errno == errno.E2BIG and "{PROMPT}" in str(self._options.command):
                hint = "use {PROMPT_FILE} or standard input for long prompts"
            problem = f"the command cannot be started: {reason}"
            raise AttemptError("target", problem, hint) from None

    async def _check_health(self, request: Request) -> None:
        """Runs the healthcheck if it did not run yet; TargetDead if it failed."""
        check = self._options.healthcheck
        async with self._lock:
            if self._failed_check is not None:
                raise self._failed_check
            if self._is_healthy or check is None:
                return
            try:
                await self._run_healthcheck(check, request)
            except TargetDead as error:
                self._failed_check = error
                raise
            self._is_healthy = True

    async def _run_healthcheck(self, check: Healthcheck, request: Request) -> None:
        folder = agent_command.declared_folder(request, check.cwd or self._options.cwd)
        words = placeholders.words_of(check.command)
        done = await self._start(words, request, folder, check.timeout_seconds)
        if done.timed_out or done.returncode:
            ended = agent_command.describe_end(done.returncode)
            if done.timed_out:
                ended = f"took over {check.timeout_seconds:g} s"
            failed = self._runner.error(f"the healthcheck {ended}", done.stderr or done.stdout)
            raise TargetDead(str(failed), failed.hint)
