"""`code_judge`: a program reads the case on standard input and prints the score."""

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.base import Case, EvaluatorOptions, folder_of
from agentevals_action.evaluators.code_judge.imports import find_imports
from agentevals_action.evaluators.code_judge.payload import judge_payload
from agentevals_action.evaluators.code_judge.target_proxy import target_proxy
from agentevals_action.evaluators.judges.replies import UnreadableReply, find_object, read_score
from agentevals_action.formatting import cut, last_lines
from agentevals_action.model.result import Score
from agentevals_action.model.suite import Evaluator, NamedFile
from agentevals_action.model.validation.file_model import FileModel, ListOf, NonEmpty
from agentevals_action.system import process
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.start_errors import describe_start, missing_script

_QUOTED_LINES = 5  # last lines of standard error that an error quotes
_QUOTED_CHARACTERS = 1_000
_MAX_WORDS = 10_000  # of a command: each may name a file of the judge

_QUOTES = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_SHELL_OPERATOR = re.compile(r"&&|\|\||[|&;<>\n]")


def _read_command(script: Any) -> Any:
    """The words of a command: a list unchanged, a string split as a shell would."""
    if isinstance(script, str):
        line = script.strip().replace("\\\n", " ")
        # Split into plain words, `true && ./check` would run `true`, and pass.
        if operator := _SHELL_OPERATOR.search(_QUOTES.sub("", line)):
            found = "a line break" if operator[0] == "\n" else operator[0]
            raise ValueError(
                f"the command has {found} in it, but no shell runs it; "
                "quote it, or write [sh, -c, '…']"
            )
        try:
            script = shlex.split(line)
        except ValueError as error:
            raise ValueError(
                f"the command cannot be split into words ({error}); write a list of words"
            ) from None
    if not isinstance(script, list | tuple):
        raise ValueError("it is not a command; write a list of words, or one string")
    if not script or not isinstance(script[0], str) or not script[0].strip():
        raise ValueError("the command names no program; write it as its first word")
    if len(script) > _MAX_WORDS:
        raise ValueError(f"the command has more than {_MAX_WORDS:,} words; put it into a script")
    if any(isinstance(word, str) and "\0" in word for word in script):
        raise ValueError("the command has a NUL character in it; remove it")
    return script


_COMMAND_SCHEMA = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "items": {"type": "string"}, "minItems": 1},
    ]
}


class Proxy(FileModel):
    """The limits of the proxy through which a judge's program calls targets."""

    max_calls: int = Field(
        default=50, ge=0, description="The most calls that the judge may make for one answer."
    )


def _read_proxy(value: Any) -> Any:
    if isinstance(value, bool):
        return {} if value else None
    advice = "write `true`, or an object with `max_calls`"
    if value is None:
        raise ValueError(f"it is empty; {advice}")
    if isinstance(value, str):
        raise ValueError(f"a code judge has a proxy here, not the name of a target; {advice}")
    return value


class CodeJudge(EvaluatorOptions):
    """A program reads the case as JSON and prints the score; with `exit_code`, it only exits with 0
    (met) or another code (not met)."""

    type = "code_judge"
    aliases = ("code_grader", "script")
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {"script": ("command",)}
    deterministic = False
    passes_fields = True

    script: Annotated[
        ListOf[str], BeforeValidator(_read_command), WithJsonSchema(_COMMAND_SCHEMA)
    ] = Field(
        description="The command to run: a list of words, or one string that is split as a "
        "shell would; no shell runs it."
    )
    cwd: NonEmpty | None = Field(
        default=None,
        description="The folder in which it runs, relative to the file that declares it "
        "(the default); a leading / is the repository root.",
    )
    timeout_seconds: Annotated[float, Field(gt=0, le=3600)] | None = Field(
        default=None, description="Its own time limit in seconds; the test's if missing."
    )
    exit_code: bool = Field(
        default=False,
        description="`true`: the exit code is the result, 0 is met and any other is not. Without "
        "it, a program that prints no score and exits with 0 is an error.",
    )
    target: Annotated[
        Proxy | None, BeforeValidator(_read_proxy, json_schema_input_type=bool | Proxy)
    ] = Field(
        default=None,
        description="Lets the program call the judge target, and others by name, through a "
        "proxy on the loopback: `true`, or `max_calls`.",
    )

    _folder: Path = PrivateAttr(Path())
    #: Whether it is declared under its name in AgentV: its payload then keeps AgentV's contract.
    _is_agentv: bool = PrivateAttr(False)

    @model_validator(mode="wrap")
    @classmethod
    def _keep_type(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        judge = handler(value)
        written = value.get("type") if isinstance(value, Mapping) else None
        judge._is_agentv = written in ("code-grader", "code_grader")
        return judge

    @field_validator("cwd")
    @classmethod
    def _check_folder(cls, cwd: str | None, info: ValidationInfo) -> str | None:
        folder_of(info).resolve(cwd or ".")
        return cwd

    @model_validator(mode="after")
    def _set_folder(self, info: ValidationInfo) -> Self:
        folder = folder_of(info)
        self._folder = folder.path if self.cwd is None else folder.resolve(self.cwd)
        return self

    def files(self, folder: Folder) -> Sequence[NamedFile]:
        """The words that are files of the repository, and all files next to one in a folder named
        `judges`, which it may import."""
        found: dict[Path, None] = {}
        for word in self.script:
            path = Path(os.path.normpath(self._folder / word))
            try:
                if not path.is_relative_to(folder.root) or not path.is_file():
                    continue
            except (OSError, ValueError):  # too long for a path
                continue
            neighbours = sorted(path.parent.iterdir()) if path.parent.name == "judges" else []
            # Both a link and the file that it leads to are part of the judge.
            for each in (path, *neighbours):
                found |= {each: None, each.resolve(): None}
        return tuple(
            NamedFile(folder.relative(path), "judge script")
            for path in found
            if path.is_file() and path.resolve().is_relative_to(folder.root)
        )

    def missing_script(self) -> Path | None:
        """The file that its command runs, if there is no such file."""
        name = missing_script(self.script, self._folder)
        return None if name is None else self._folder / name

    def imported_files(self, files: Sequence[Path], root: Path) -> Sequence[Path]:
        """The files of the repository that the program imports, besides its `files`; all
        paths are absolute."""
        return find_imports(files, self.script, self._folder, root)

    def needs_judge(self) -> bool:
        """Whether its program may call targets."""
        return self.target is not None

    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """The score that the program prints; AttemptError if it cannot be read."""
        try:
            payload = json.dumps(
                judge_payload(case, evaluator, agentv=self._is_agentv), allow_nan=False
            )
        except (OSError, ValueError) as error:
            raise AttemptError(
                "evaluator", f"the case cannot be written for the judge: {error}"
            ) from None
        if not case.judge_path(self._folder).is_dir():
            raise AttemptError("evaluator", f"the judge's folder {self.cwd or '.'} does not exist")
        if self.target is None:
            return await self._run(case, case.environment, payload)
        async with target_proxy(case.judges(evaluator), self.target.max_calls) as proxy:
            try:
                return await self._run(case, {**case.environment, **proxy.environment}, payload)
            except AttemptError as error:
                if not proxy.last_error:
                    raise
                message = f"{error} (the target proxy had refused: {proxy.last_error})"
                raise AttemptError(error.kind, message, error.hint) from None

    async def _run(self, case: Case, environment: Mapping[str, str], payload: str) -> Score:
        limit, folder = self.timeout_seconds or case.timeout, case.judge_path(self._folder)
        try:
            completed = await process.run(
                self.script,
                cwd=folder,
                environment=environment,
                timeout=limit,
                stdin=payload,
                user=case.user,
            )
        except OSError as error:
            reason, hint = describe_start(error, self.script[0], folder)
            problem = f"the judge {self.script[0]!r} cannot be started: {reason}"
            raise AttemptError("evaluator", problem, hint) from None
        # The program may have failed without a variable.
        hint = ""
        if case.withheld:
            hint = (
                f"Withheld from its environment: {', '.join(case.withheld)}; "
                "what it needs can be named in the workflow's input `env`."
            )
        lines = last_lines(completed.stderr, _QUOTED_LINES, _QUOTED_CHARACTERS)
        stderr = ": " + "\n".join(lines) if lines else ""
        if completed.timed_out:
            raise AttemptError("evaluator", f"the judge ran for over {limit:g} s{stderr}", hint)
        if completed.truncated:
            raise AttemptError("evaluator", "the judge's output is longer than the limit", hint)
        if completed.returncode < 0:
            message = f"the judge was killed by signal {-completed.returncode}{stderr}"
            raise AttemptError("evaluator", message, hint)
        if self.exit_code:
            return _score_code(completed, hint)
        return _read_output(completed, stderr, hint)


def _score_code(completed: process.Completed, hint: str) -> Score:
    """The score of the exit code alone; the output is the hit or the miss."""
    code, text = completed.returncode, completed.stdout.strip() or completed.stderr.strip()
    text = cut(text, _QUOTED_CHARACTERS) or f"exit code {code}"
    if code == 0:
        return Score(1.0, hits=(text,))
    return Score(0.0, misses=(text,), reasoning=hint)


def _read_output(completed: process.Completed, stderr: str, hint: str) -> Score:
    """The score that a program printed. Without one, a code that is not 0 scores 0, unless standard
    error says what went wrong; the code 0 alone does not pass, because a program that never calls
    its main function exits with it, too."""
    code, stdout = completed.returncode, completed.stdout
    if code != 0 and ("{" in stdout or completed.stderr):
        printed = "\n".join(stdout.strip().splitlines()[-_QUOTED_LINES:])[-_QUOTED_CHARACTERS:]
        printed = f"\nstandard output: {printed}" if printed else ""
        raise AttemptError("evaluator", f"the judge exited with code {code}{stderr}{printed}", hint)
    if code != 0:
        return _score_code(completed, hint)
    if "{" not in stdout:
        advice = (
            'let it print {"score": …}, or write `exit_code: true` if its exit code is the result'
        )
        message = f"the judge printed no JSON object and exited with code 0{stderr}; {advice}"
        raise AttemptError("evaluator", message, hint)
    try:
        return read_score(find_object(stdout, ("score", "assertions")), share=True)
    except UnreadableReply as error:
        raise AttemptError(
            "evaluator", f"the judge's output cannot be read: {error}{stderr}", hint
        ) from None
