"""`cli`: an agent that is a command. Prompt in by placeholder or standard input, answer out by file or standard output."""

import asyncio
import os
import shlex
import stat
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, Strict, field_validator, model_validator

from agentevals_action import placeholders, process
from agentevals_action.envelope import read_reply
from agentevals_action.errors import AttemptError, TargetDead
from agentevals_action.messages import prompt_text
from agentevals_action.model.trace import Trace
from agentevals_action.paths import Folder
from agentevals_action.providers import base

Command = str | Annotated[tuple[str, ...], Strict(False)]

_STDERR_LINES, _STDERR_CHARACTERS = 10, 2000
_LATER = ("files_format", "provider_batching")


def _checked(command: Command) -> Command:
    placeholders.check(command)
    return command


class Healthcheck(BaseModel):
    """A command that must succeed once before the target is used."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    command: Command = Field(description="The command: a list of words, or a script of `sh`.")
    cwd: str | None = Field(default=None, description="Its folder; the target's by default.")
    timeout_seconds: Annotated[float, Field(gt=0)] = Field(default=60, description="Seconds that it may take.")

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:
        if isinstance(data, str | list | tuple):
            return {"command": data}
        if isinstance(data, Mapping) and ("url" in data or data.get("type") == "http"):
            raise ValueError("a healthcheck by URL is not supported by this version yet; write a `command`, such as curl with --fail")
        return data

    @field_validator("command")
    @classmethod
    def _safe(cls, command: Command) -> Command:
        return _checked(command)


class Cli(base.Options):
    """An agent behind a command."""

    provider: ClassVar[str] = "cli"

    command: Command = Field(
        description="The command: a list of words, or a script of `sh`. Placeholders: {PROMPT}, {PROMPT_FILE}, {OUTPUT_FILE}, {EVAL_ID}, "
        "{ATTEMPT}. Without one for the prompt it comes on standard input, without {OUTPUT_FILE} the answer is standard output."
    )
    cwd: str | None = Field(default=None, description="Folder to run in, relative to the suite's; a leading / is the repository's root.")
    env: Annotated[tuple[str, ...], Strict(False)] | None = Field(
        default=None,
        description="Names of the variables to pass on, of those that the workflow's input `env` lets through; by default all.",
    )
    healthcheck: Healthcheck | None = Field(default=None, description="A command that must succeed once before the target is used.")

    @model_validator(mode="before")
    @classmethod
    def _later(cls, data: Any) -> Any:
        for name in _LATER:
            if isinstance(data, Mapping) and data.get(name):
                raise ValueError(f"`{name}` is not supported by this version yet; leave it out")
        return data

    @field_validator("command")
    @classmethod
    def _safe(cls, command: Command) -> Command:
        return _checked(command)

    def connect(self, surroundings: base.Surroundings) -> base.Provider:
        """The command with its environment; AttemptError when it names a variable that the workflow does not let through."""
        return _Connected(self, surroundings)

    def variables(self) -> Sequence[str]:
        """The names of `env`: the agent was told to expect them."""
        return self.env or ()

    def files(self, folder: Folder) -> Sequence[str]:
        """Words of the command, or what they say after `=`, that are files of the repository."""
        try:
            place = folder.resolve(self.cwd) if self.cwd else folder.path
            words = shlex.split(self.command, comments=True) if isinstance(self.command, str) else self.command
        except ValueError:  # a folder with `${{ }}` in it, or quotes that only a shell understands: no file can be told
            return ()
        named = (_file(place, word, folder.root) for word in words for word in (word, word.rpartition("=")[2]))
        return tuple(dict.fromkeys(path for path in named if path))


def _file(place: Path, word: str, root: Path) -> str | None:
    try:
        path = (place / word).resolve()
        return path.relative_to(root).as_posix() if path.is_relative_to(root) and path.is_file() else None
    except (OSError, ValueError):  # a word that is no path: a script, a long text
        return None


class _Connected:
    def __init__(self, options: Cli, surroundings: base.Surroundings) -> None:
        self._options = options
        self._withheld = surroundings.withheld
        self._scratch = surroundings.scratch
        self._environment = _environment(options.env, surroundings)
        self._lock = asyncio.Lock()
        self._healthy = options.healthcheck is None

    async def complete(self, request: base.Request) -> Trace:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + request.timeout
        await self._check_health(request)
        try:
            prompt = prompt_text(request.messages)
        except (OSError, ValueError) as error:
            raise AttemptError("configuration", f"the prompt cannot be read: {error}") from None
        with tempfile.TemporaryDirectory(prefix="agentevals-", dir=self._scratch, ignore_cleanup_errors=True) as scratch:
            place = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY)
            try:
                done = await self._run(request, prompt, Path(scratch), max(deadline - loop.time(), 0))
                text = _read_output(place) if placeholders.uses(self._options.command, "OUTPUT_FILE") else done.stdout
            finally:
                os.close(place)
        if not text.strip():
            raise self._failed("the command succeeded without an answer", done.stderr)
        try:
            return read_reply(text)
        except ValueError as error:
            raise self._failed(str(error), done.stderr) from None

    async def close(self) -> None:
        """Holds nothing open."""

    async def _run(self, request: base.Request, prompt: str, scratch: Path, timeout: float) -> process.Completed:
        command = self._options.command
        values = {
            "PROMPT": prompt,
            "PROMPT_FILE": str(scratch / "prompt.txt"),
            "OUTPUT_FILE": str(scratch / "output.txt"),
            "EVAL_ID": request.eval_id,
            "ATTEMPT": str(request.attempt),
        }
        by_file = placeholders.uses(command, "PROMPT_FILE")
        if by_file:
            (scratch / "prompt.txt").write_text(prompt, encoding="utf-8", errors="replace", newline="")
        stdin = "" if by_file or placeholders.uses(command, "PROMPT") else prompt
        done = await self._start(command, values, self._folder(request, self._options.cwd), timeout, stdin)
        if done.timed_out:
            raise self._failed(f"no answer within {request.timeout:g} s", done.stderr, "timeout")
        if done.returncode:
            raise self._failed(f"the command {_ended(done.returncode)}", done.stderr or done.stdout)
        if done.truncated:
            raise self._failed(f"the command wrote more than {process.OUTPUT_LIMIT // 1024**2} MB", done.stderr)
        return done

    async def _start(self, command: Command, values: Mapping[str, str], folder: Path, timeout: float, stdin: str = "") -> process.Completed:
        try:
            words, variables = placeholders.fill(command, values)
            return await process.run(words, cwd=folder, environment={**self._environment, **variables}, timeout=timeout, stdin=stdin)
        except ValueError as error:
            raise AttemptError("configuration", f"the command cannot be run: {error}") from None
        except OSError as error:
            hint = "use {PROMPT_FILE} or standard input for long prompts" if "{PROMPT}" in str(command) else ""
            raise AttemptError("target", f"the command cannot be started: {error}", hint) from None

    async def _check_health(self, request: base.Request) -> None:
        check = self._options.healthcheck
        async with self._lock:
            if self._healthy or check is None:
                return
            values = {"PROMPT": "", "PROMPT_FILE": os.devnull, "OUTPUT_FILE": os.devnull, "EVAL_ID": "healthcheck", "ATTEMPT": "0"}
            folder = self._folder(request, check.cwd or self._options.cwd)
            done = await self._start(check.command, values, folder, check.timeout_seconds)
            if done.timed_out or done.returncode:
                ended = f"took over {check.timeout_seconds:g} s" if done.timed_out else _ended(done.returncode)
                failed = self._failed(f"the healthcheck {ended}", done.stderr or done.stdout)
                raise TargetDead(str(failed), failed.hint)
            self._healthy = True

    def _folder(self, request: base.Request, cwd: str | None) -> Path:
        try:
            folder = Folder(request.root, request.suite_folder).resolve(cwd) if cwd else request.suite_folder
        except ValueError as error:
            raise AttemptError("configuration", f"`cwd`: {error}") from None
        if not folder.is_dir():
            raise AttemptError("configuration", f"`cwd`: there is no folder {cwd!r}")
        return folder

    def _failed(self, message: str, stderr: str, kind: str = "target") -> AttemptError:
        lines = stderr.strip()[-_STDERR_CHARACTERS:].splitlines()[-_STDERR_LINES:]
        hint = (
            f"variables withheld from it: {', '.join(self._withheld)} (the workflow's input `env` lets them through)"
            if self._withheld
            else ""
        )
        return AttemptError(kind, "\n".join([f"{message}:", *lines]) if lines else message, hint)


def _ended(returncode: int) -> str:
    return f"ended with exit code {returncode}" if returncode > 0 else f"was ended by signal {-returncode}"


def _environment(names: Sequence[str] | None, surroundings: base.Surroundings) -> Mapping[str, str]:
    """The child's variables: all that the workflow lets through, or of those the ones that the target names."""
    allowed = {name: value for name, value in surroundings.allowed.items() if not process.never_passed(name)}
    if names is None:
        return {**surroundings.environment, **allowed}
    common = {name: value for name, value in surroundings.environment.items() if name not in allowed}
    if refused := [name for name in names if name not in allowed and name not in common]:
        raise AttemptError(
            "configuration",
            f"the target's `env` names {', '.join(refused)}, which the workflow does not let through",
            "name it in the workflow's input `env`, and set it in its `env:`",
        )
    return {**common, **{name: allowed[name] for name in names if name in allowed}}


def _read_output(place: int) -> str:
    """What the command left in its output file. It may have put anything there: only a plain file is read, no link is followed."""
    try:
        file = os.open("output.txt", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
    except FileNotFoundError:
        raise AttemptError("target", "the command succeeded, but did not write {OUTPUT_FILE}") from None
    except OSError as error:
        raise AttemptError("target", f"{{OUTPUT_FILE}} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise AttemptError("target", "{OUTPUT_FILE} is no plain file")
    with os.fdopen(file, "rb") as stream:
        data = stream.read(process.OUTPUT_LIMIT + 1)
    if len(data) > process.OUTPUT_LIMIT:
        raise AttemptError("target", f"{{OUTPUT_FILE}} is over {process.OUTPUT_LIMIT // 1024**2} MB")
    return data.decode("utf-8", "replace")
