"""`cli`: an agent that is a command. Prompt in by placeholder or standard input, answer out by file
or standard output."""

import os
import shlex
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from agentevals_action.entries.entry import Seen, checks
from agentevals_action.errors import AttemptError, TargetDead
from agentevals_action.model.messages import prompt_text
from agentevals_action.model.trace import Trace
from agentevals_action.system import process
from agentevals_action.system.paths import Folder
from agentevals_action.targets import base
from agentevals_action.targets.agents import command as agent_command
from agentevals_action.targets.agents import health as agent_health
from agentevals_action.targets.agents import placeholders
from agentevals_action.targets.reply_envelope import read_reply


class Cli(base.Options):
    """An agent behind a command."""

    provider: ClassVar[str] = "cli"
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {"files_format": ("attachments_format",)}

    command: Annotated[
        agent_health.Command,
        Meta(
            description="The command: a list of words, or a script of `sh`. Placeholders: {PROMPT}, {PROMPT_FILE}, {OUTPUT_FILE}, {FILES}, "
            "{EVAL_ID}, {ATTEMPT}. Without one for the prompt it comes on standard input, without {OUTPUT_FILE} the answer is standard "
            "output."
        ),
    ]
    cwd: agent_command.Place = None
    env: agent_command.Names = None
    files_format: Annotated[
        str,
        Meta(
            description="How {FILES} names each file of the test's messages, by {path} and {basename}, as in `--file {path}`."
        ),
    ] = "{path}"
    healthcheck: Annotated[
        agent_health.Healthcheck | None,
        Meta(
            description="A command that must succeed, or a URL that must answer, once before the target is used."
        ),
    ] = None

    @classmethod
    def long_form(cls, value: Any) -> Any:
        """The value itself; ValueError when it asks for what would change the meaning of a test."""
        if isinstance(value, Mapping) and value.get("provider_batching"):
            raise ValueError(
                "`provider_batching` is not supported: each test is a call of its own; leave it out"
            )
        return value

    @checks("files_format")
    @classmethod
    def _says_a_file(cls, files_format: str, _seen: Seen) -> str:
        placeholders.check_format(files_format)
        return files_format

    def connect(self, surroundings: base.Surroundings) -> base.Provider:
        """The command with its environment; AttemptError when it names a variable that the workflow
        does not let through."""
        return _Connected(self, surroundings)

    def variables(self) -> Sequence[str]:
        """The names of `env`: the agent was told to expect them."""
        return self.env or ()

    def files(self, folder: Folder) -> Sequence[str]:
        """Words of the command, or what they say after `=`, that are files of the repository."""
        try:
            place = folder.resolve(self.cwd) if self.cwd else folder.path
            words = (
                shlex.split(self.command, comments=True)
                if isinstance(self.command, str)
                else self.command
            )
        except ValueError:  # a folder with `${{ }}` in it, or quotes that only a shell understands: no file can be told
            return ()
        return agent_command.files(words, place, folder.root)


class _Connected:
    def __init__(self, options: Cli, surroundings: base.Surroundings) -> None:
        import asyncio  # late: targets are read without an event loop

        self._options = options
        self._runner = agent_command.Runner(options.env, surroundings)
        self._lock = asyncio.Lock()
        self._healthy = options.healthcheck is None
        self._sick: TargetDead | None = None

    async def complete(self, request: base.Request) -> Trace:
        import asyncio

        loop = asyncio.get_running_loop()
        deadline = loop.time() + request.timeout
        await self._check_health(request)
        with _scratch(self._runner.scratch, self._options.command) as (folder, place):
            done = await self._run(request, folder, max(deadline - loop.time(), 0))
            text = (
                _read_output(place)
                if placeholders.uses(self._options.command, "OUTPUT_FILE")
                else done.stdout
            )
        if not text.strip():
            raise self._runner.failed("the command succeeded without an answer", done.stderr)
        try:
            return read_reply(text)
        except ValueError as error:
            raise self._runner.failed(str(error), done.stderr) from None

    async def check(self, request: base.Request) -> None:
        """The healthcheck; without one, that the program can be found: what an agent behind a
        command does for little is not known."""
        if self._options.healthcheck is not None:
            await self._check_health(request)
            return
        folder, command = agent_command.at(self._options.command, request, self._options.cwd)
        program = _program(command)
        if isinstance(command, str):  # a shell knows its own words (`cd`, `if`) beside programs
            look = ["sh", "-c", 'command -v -- "$1"', "sh", program]
            found = (await self._start(look, request, folder, request.timeout)).returncode == 0
        else:
            found = self._runner.finds(program, folder)
        if not found:
            raise TargetDead(
                f"there is no command {program!r}",
                "install it in the input `setup`, or mend the target's `command`",
            )

    async def close(self) -> None:
        """Holds nothing open."""

    async def _run(self, request: base.Request, scratch: Path, timeout: float) -> process.Completed:
        folder, command = agent_command.at(self._options.command, request, self._options.cwd)
        prompt, files = self._texts(request, scratch)
        values = {
            "PROMPT": prompt,
            "PROMPT_FILE": str(scratch / "prompt.txt"),
            "OUTPUT_FILE": str(scratch / "output.txt"),
            "EVAL_ID": request.eval_id,
            "ATTEMPT": str(request.attempt),
        }
        by_file = placeholders.uses(command, "PROMPT_FILE")
        if by_file:
            (scratch / "prompt.txt").write_text(
                prompt, encoding="utf-8", errors="replace", newline=""
            )
        stdin = "" if by_file or placeholders.uses(command, "PROMPT") else prompt
        words, variables = _filled(command, values, files)
        done = await self._start(words, request, folder, timeout, stdin=stdin, variables=variables)
        if done.timed_out:
            raise self._runner.failed(
                f"no answer within {request.timeout:g} s", done.stderr, "timeout"
            )
        if done.returncode:
            raise self._runner.failed(
                f"the command {agent_command.ended(done.returncode)}", done.stderr or done.stdout
            )
        if done.truncated:
            raise self._runner.failed(
                f"the command wrote more than {process.OUTPUT_LIMIT // 1024**2} MB", done.stderr
            )
        return done

    def _texts(self, request: base.Request, scratch: Path) -> tuple[str, tuple[str, ...]]:
        """The prompt, and the words of {FILES} where the command wants them."""
        try:
            prompt = prompt_text(request.messages)
            paths = (
                placeholders.attached_files(request.messages, scratch)
                if placeholders.uses(self._options.command, "FILES")
                else ()
            )
        except (OSError, ValueError) as error:
            raise AttemptError("configuration", f"the prompt cannot be read: {error}") from None
        return prompt, placeholders.file_words(self._options.files_format, paths)

    async def _start(
        self,
        words: Sequence[str],
        request: base.Request,
        folder: Path,
        timeout: float,
        **given: Any,
    ) -> process.Completed:
        try:
            return await self._runner.run(words, request, folder, timeout, **given)
        except OSError as error:
            hint = (
                "use {PROMPT_FILE} or standard input for long prompts"
                if "{PROMPT}" in str(self._options.command)
                else ""
            )
            raise AttemptError("target", f"the command cannot be started: {error}", hint) from None

    async def _check_health(self, request: base.Request) -> None:
        check = self._options.healthcheck
        async with self._lock:
            if self._sick is not None:
                raise self._sick
            if self._healthy or check is None:
                return
            try:
                if check.url is not None:
                    await agent_health.ask(check.url, check.timeout_seconds)
                elif check.command is not None:
                    await self._run_healthcheck(check.command, check, request)
            except TargetDead as error:
                self._sick = error
                raise
            self._healthy = True

    async def _run_healthcheck(
        self, command: agent_health.Command, check: agent_health.Healthcheck, request: base.Request
    ) -> None:
        values = {
            "PROMPT": "",
            "PROMPT_FILE": os.devnull,
            "OUTPUT_FILE": os.devnull,
            "EVAL_ID": "healthcheck",
            "ATTEMPT": "0",
        }
        folder = agent_command.home(request, check.cwd or self._options.cwd)
        words, variables = _filled(command, values)
        done = await self._start(words, request, folder, check.timeout_seconds, variables=variables)
        if done.timed_out or done.returncode:
            ended = (
                f"took over {check.timeout_seconds:g} s"
                if done.timed_out
                else agent_command.ended(done.returncode)
            )
            failed = self._runner.failed(f"the healthcheck {ended}", done.stderr or done.stdout)
            raise TargetDead(str(failed), failed.hint)


def _filled(
    command: str | Sequence[str], values: Mapping[str, str], files: Sequence[str] = ()
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    try:
        return placeholders.fill(command, values, files)
    except ValueError as error:
        raise AttemptError("configuration", f"the command cannot be run: {error}") from None


def _program(command: str | Sequence[str]) -> str:
    """The program that a command begins with; `sh` where only a shell can tell."""
    if not isinstance(command, str):
        return command[0]
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        return "sh"
    return next(
        (word for word in words if "=" not in word and not word.startswith(("(", "{"))), "sh"
    )


@contextmanager
def _scratch(parent: Path | None, command: str | Sequence[str]) -> Iterator[tuple[Path, int]]:
    """A folder for the files of a call, and a hold on it that stays when the agent puts something
    else there; the parent, and none, when the command names no such file."""
    if not any(
        placeholders.uses(command, name) for name in ("PROMPT_FILE", "OUTPUT_FILE", "FILES")
    ):
        yield parent or Path(tempfile.gettempdir()), -1
        return
    with tempfile.TemporaryDirectory(
        prefix="agentevals-", dir=parent, ignore_cleanup_errors=True
    ) as scratch:
        place = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield Path(scratch), place
        finally:
            os.close(place)


def _read_output(place: int) -> str:
    """What the command left in its output file. It may have put anything there: only a plain file
    is read, no link is followed."""
    try:
        file = os.open("output.txt", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
    except FileNotFoundError:
        raise AttemptError(
            "target", "the command succeeded, but did not write {OUTPUT_FILE}"
        ) from None
    except OSError as error:
        raise AttemptError("target", f"{{OUTPUT_FILE}} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise AttemptError("target", "{OUTPUT_FILE} is no plain file")
    with os.fdopen(file, "rb") as stream:
        data = stream.read(process.OUTPUT_LIMIT + 1)
    if len(data) > process.OUTPUT_LIMIT:
        raise AttemptError(
            "target", f"{{OUTPUT_FILE}} is over {process.OUTPUT_LIMIT // 1024**2} MB"
        )
    return data.decode("utf-8", "replace")
