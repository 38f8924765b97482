"""`code_judge`: a program grades the answer; the case on its standard input, the score on its
standard output."""

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from msgspec import Meta
from msgspec.structs import replace

from agentevals_action.entries.entry import (
    Aside,
    Before,
    Entry,
    NonEmpty,
    Seen,
    Shown,
    Written,
    checks,
)
from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import Case, Options
from agentevals_action.evaluators.code_judge.payload import judge_payload
from agentevals_action.evaluators.judges.replies import UnreadableReply, find_object, read_score
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator, NamedFile
from agentevals_action.system import process
from agentevals_action.system.paths import Folder

_TOLD_LINES = 5  # last lines of standard error that an error quotes
_TOLD_CHARACTERS = 1_000
_MOST_WORDS = 10_000  # of a command: each is looked for as a file of the judge

_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_SHELL_ONLY = re.compile(r"&&|\|\||[|&;<>\n]")


def _words(script: Any) -> Any:
    """The words of a command: a list as it is, a string split as a shell would; ValueError when
    that is no single command."""
    if isinstance(script, str):
        script = _split(script)
    if not isinstance(script, list | tuple):
        raise ValueError("a command is a list of words, or one string")
    if not script or not isinstance(script[0], str) or not script[0].strip():
        raise ValueError("the command names no program; write it as its first word")
    if len(script) > _MOST_WORDS:
        raise ValueError(f"the command has more than {_MOST_WORDS:,} words; put it into a script")
    if any(isinstance(word, str) and "\0" in word for word in script):
        raise ValueError("the command has a NUL character in it")
    return script


def _split(text: str) -> list[str]:
    line = text.strip().replace("\\\n", " ")
    operator = _SHELL_ONLY.search(_QUOTED.sub("", line))
    if operator:
        # Passed on as plain words, `true && ./check` would run `true`, and pass.
        found = "a line break" if operator[0] == "\n" else operator[0]
        raise ValueError(
            f"the command has {found} in it, but no shell runs it; quote it, or write [sh, -c, '…']"
        )
    try:
        return shlex.split(line)
    except ValueError as error:
        raise ValueError(
            f"the command cannot be split into words ({error}); write a list of words"
        ) from None


_COMMAND_SCHEMA = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "items": {"type": "string"}, "minItems": 1},
    ]
}


_MOST_CALLS = "How many calls the judge may make for one answer."


class Proxy(Entry):
    """What a judge's program may ask of targets, through a proxy on the loopback."""

    max_calls: Annotated[int, Meta(ge=0, description=_MOST_CALLS)] = 50


def _read_proxy(value: Any) -> Any:
    if value is True:
        return {}
    if value is False:
        return None
    if value is None:
        raise ValueError("it is empty; write `true`, or an object with `max_calls`")
    if isinstance(value, str):
        raise ValueError(
            "a code judge gets a proxy here, not a target by its name; write `true`, or an object with `max_calls`"
        )
    return value


_PROXY_SCHEMA = {
    "anyOf": [
        {"type": "boolean"},
        {
            "type": "object",
            "properties": {
                "max_calls": {
                    "type": "integer",
                    "minimum": 0,
                    "default": 50,
                    "description": _MOST_CALLS,
                }
            },
        },
    ]
}


class CodeJudge(Options):
    """A program reads the case as JSON and prints the score, or just exits with 0 (met) or another
    code (not met)."""

    type = "code_judge"
    aliases = ("code_grader", "script")
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {"script": ("command",)}
    deterministic = False

    script: Annotated[
        Annotated[tuple[str, ...], Before(_words), Shown(_COMMAND_SCHEMA)],
        Meta(
            description="The command to run: a list of words, or one string that is split as a shell would; no shell runs it."
        ),
    ]
    cwd: Annotated[
        NonEmpty | None,
        Meta(
            description="The folder to run it in, relative to the file that declares it (the default); a leading / is the repository root."
        ),
    ] = None
    timeout_seconds: Annotated[
        Annotated[float, Meta(gt=0, le=3600)] | None,
        Meta(description="Its own time limit in seconds; the test's when it is missing."),
    ] = None

    target: Annotated[
        Annotated[Proxy | None, Before(_read_proxy), Shown(_PROXY_SCHEMA)],
        Meta(
            description="Lets the program ask the judge target, and others by name, through a proxy on the loopback: `true`, or "
            "`max_calls`."
        ),
    ] = None

    #: The folder to run in.
    folder: Annotated[Path, Aside()] = Path()

    @checks("cwd")
    @classmethod
    def _inside(cls, cwd: str | None, seen: Seen) -> str | None:
        _folder_of(cwd, seen.folder)
        return cwd

    def completed(self, written: Written) -> Self:
        """With the folder to run in."""
        return replace(self, folder=_folder_of(self.cwd, written.folder))

    def files(self, folder: Folder) -> Sequence[NamedFile]:
        """The words that are files of the repository, and the files beside those that lie in a
        folder named `judges`."""
        words = [
            path for word in self.script if (path := _existing(self.folder, word, folder.root))
        ]
        # What a link leads to is part of the judge as well as the link.
        paths = dict.fromkeys(
            found
            for path in words
            for file in (path, *_beside(path))
            for found in (file, file.resolve())
        )
        inside = (
            path for path in paths if path.is_file() and path.resolve().is_relative_to(folder.root)
        )
        return tuple(NamedFile(folder.relative(path), "judge script") for path in inside)

    def needs_judge(self) -> bool:
        """When its program may ask targets."""
        return self.target is not None

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """What the program says; AttemptError when it does not say anything that can be read."""
        try:
            payload = json.dumps(judge_payload(case, evaluator), allow_nan=False)
        except (OSError, ValueError) as error:
            raise AttemptError(
                "evaluator", f"the case cannot be written for the judge: {error}"
            ) from None
        if not self.folder.is_dir():
            raise AttemptError("evaluator", f"the judge's folder {self.cwd or '.'} does not exist")
        if self.target is None:
            return await self._run(case, case.environment, payload)
        from agentevals_action.evaluators.code_judge.target_proxy import (
            target_proxy,  # late: few judges ask a target
        )

        async with target_proxy(case.judges(evaluator), self.target.max_calls) as proxy:
            try:
                return await self._run(case, {**case.environment, **proxy.environment}, payload)
            except AttemptError as error:
                if not proxy.failure:
                    raise
                raise AttemptError(
                    error.kind,
                    f"{error} (the target proxy had refused: {proxy.failure})",
                    error.hint,
                ) from None

    async def _run(self, case: Case, environment: Mapping[str, str], payload: str) -> Score:
        limit = self.timeout_seconds or case.timeout
        try:
            completed = await process.run(
                self.script, cwd=self.folder, environment=environment, timeout=limit, stdin=payload
            )
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise AttemptError(
                "evaluator", f"the judge {self.script[0]!r} cannot be started ({reason})"
            ) from None
        hint = withheld_hint(case.withheld)
        if completed.timed_out:
            raise AttemptError(
                "evaluator",
                f"the judge ran for over {limit:g} s{_last_words(completed.stderr)}",
                hint,
            )
        if completed.truncated:
            raise AttemptError("evaluator", "the judge printed more than is kept of it", hint)
        return read_verdict(completed, hint)


def _folder_of(cwd: str | None, folder: Folder | None) -> Path:
    if folder is None:
        raise TypeError(
            "options that name files are read with the folder of the file that holds them"
        )
    return folder.path if cwd is None else folder.resolve(cwd)


def _existing(folder: Path, word: str, root: Path) -> Path | None:
    """The file that a word names inside the repository, links in it kept; None for most words of a
    command."""
    path = Path(os.path.normpath(folder / word))
    try:
        return path if path.is_relative_to(root) and path.is_file() else None
    except (OSError, RuntimeError, ValueError):
        return None  # no word that could be a path


def _beside(path: Path) -> Sequence[Path]:
    """The files beside a judge in a folder named `judges`, which it may import."""
    return (
        sorted(file for file in path.parent.iterdir() if file.is_file())
        if path.parent.name == "judges"
        else ()
    )


def withheld_hint(names: Sequence[str]) -> str:
    """What to do when a program may have failed for want of a variable; empty when none was
    withheld."""
    if not names:
        return ""
    return f"Withheld from its environment: {', '.join(names)}; what it needs can be named in the workflow's input `env`."


def read_verdict(completed: process.Completed, hint: str = "") -> Score:
    """The score in what a program printed, or in its exit code when it printed no `{`; AttemptError
    when neither tells."""
    code, stderr = completed.returncode, completed.stderr
    if code < 0:
        raise AttemptError(
            "evaluator", f"the judge was killed by signal {-code}{_last_words(stderr)}", hint
        )
    if "{" not in completed.stdout:
        return _by_exit_code(completed, hint)
    if code != 0:
        raise AttemptError(
            "evaluator", f"the judge exited with code {code}{_last_words(stderr)}", hint
        )
    try:
        data: Mapping[str, Any] = find_object(completed.stdout, ("score", "assertions"))
        return read_score(data, share=True)
    except UnreadableReply as failure:
        raise AttemptError(
            "evaluator", f"the judge's output cannot be read: {failure}{_last_words(stderr)}", hint
        ) from None


def _by_exit_code(completed: process.Completed, hint: str) -> Score:
    code = completed.returncode
    if code != 0 and completed.stderr:
        raise AttemptError(
            "evaluator", f"the judge exited with code {code}{_last_words(completed.stderr)}", hint
        )
    text = completed.stdout.strip()[:_TOLD_CHARACTERS] or f"exit code {code}"
    if code == 0:
        return Score(1.0, hits=(text,))
    return Score(0.0, misses=(text,), reasoning=hint)


def _last_words(stderr: str) -> str:
    lines = stderr.strip().splitlines()[-_TOLD_LINES:]
    return ": " + "\n".join(lines)[-_TOLD_CHARACTERS:] if lines else ""
