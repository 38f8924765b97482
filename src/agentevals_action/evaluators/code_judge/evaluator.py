"""`code_judge`: a program reads the case on standard input and prints the score."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from agentevals_action.errors import AttemptError
from agentevals_action.evaluators.code_judge.payload import judge_payload
from agentevals_action.evaluators.code_judge.target_proxy import target_proxy
from agentevals_action.evaluators.json.objects import UnreadableReply, find_objects
from agentevals_action.evaluators.judges.replies import read_score
from agentevals_action.formatting import cut
from agentevals_action.model.diagnostic import NamedFile, files_of_program
from agentevals_action.model.evaluator import Case, Evaluator
from agentevals_action.model.result import Score
from agentevals_action.system import process
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.program import all_words, child_error, missing_script
from agentevals_action.validation.file_model import (
    FileModel,
    ListOf,
    NonEmpty,
    get_folder,
    spelled,
)

_QUOTED_CHARACTERS = 1_000  # of the output, as the hit or miss of an exit code

_QUOTES = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_SHELL_OPERATOR = re.compile(r"&&|\|\||[|&;<>\n]")


def _read_command(script: Any) -> Any:
    """The words of a command: a list unchanged, a string split as a shell would."""
    if isinstance(script, str):
        line = script.strip().replace("\\\n", " ")
        # Split into plain words, `true && ./check` would run `true`, and pass.
        if operator := _SHELL_OPERATOR.search(_QUOTES.sub("", line)):
            symbol = "a line break" if operator[0] == "\n" else operator[0]
            raise ValueError(
                f"the command has {symbol} in it, but no shell runs it; "
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


class CodeJudge(Evaluator):
    """A program reads the case as JSON and prints the score; with `exit_code`, it only exits with 0
    (met) or another code (not met)."""

    type = "code_judge"
    deterministic = False
    runs_programs = True
    passes_fields = True

    script: Annotated[
        ListOf[str], BeforeValidator(_read_command), WithJsonSchema(_COMMAND_SCHEMA)
    ] = spelled(
        "script",
        "command",
        description="The command to run: a list of words, or one string that is split as a "
        "shell would; no shell runs it.",
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

    @field_validator("cwd")
    @classmethod
    def _check_folder(cls, cwd: str | None, info: ValidationInfo) -> str | None:
        get_folder(info).resolve(cwd or ".")
        return cwd

    @model_validator(mode="after")
    def _set_folder(self, info: ValidationInfo) -> Self:
        folder = get_folder(info)
        self._folder = folder.path if self.cwd is None else folder.resolve(self.cwd)
        return self

    def named_files(self, folder: Folder) -> Sequence[NamedFile]:
        """The words of the command that are files of the repository, all files of their folders
        that are named `judges`, and what these files import."""
        words = all_words(self.script)
        files = tuple(folder.files_among(words, self._folder))
        judges = dict.fromkeys(path.parent for path in files if path.parent.name == "judges")
        names = sorted(str(path) for judge_folder in judges for path in judge_folder.iterdir())
        files += tuple(folder.files_among(names, self._folder))
        return files_of_program(files, "judge script", words, self._folder, folder)

    def missing_script(self) -> Path | None:
        """The file that its command runs, if there is no such file."""
        return missing_script(self.script, self._folder)

    def needs_judge(self) -> bool:
        """Whether its program may call targets."""
        return self.target is not None

    def reads_criteria(self) -> bool:
        """Whether its program may ask a model about the criteria."""
        return self.needs_judge()

    async def evaluate(self, case: Case) -> Score:
        """The score that the program prints; AttemptError if it cannot be read."""
        # Under its name in AgentV, its payload keeps AgentV's contract.
        is_agentv = self.written_type in ("code-grader", "code_grader")
        try:
            payload = json.dumps(
                judge_payload(case, self.config, agentv=is_agentv), allow_nan=False
            )
        except (OSError, ValueError) as error:
            raise AttemptError(
                "evaluator", f"the case cannot be written for the judge: {error}"
            ) from None
        if self.target is None:
            return await self._run(case, {}, payload)
        async with target_proxy(case.judges(self), self.target.max_calls) as proxy:
            try:
                return await self._run(case, proxy.environment, payload)
            except AttemptError as error:
                if not proxy.last_error:
                    raise
                message = f"{error} (the target proxy had refused: {proxy.last_error})"
                raise AttemptError(error.kind, message, error.hint) from None

    async def _run(self, case: Case, variables: Mapping[str, str], payload: str) -> Score:
        program = case.program(self.script, self._folder, variables)
        done = await process.run_checked(
            "the judge",
            program,
            kind="evaluator",
            timeout=self.timeout_seconds or case.timeout,
            codes=range(256),
            stdin=payload,
        )
        if self.exit_code:
            with suppress(UnreadableReply):
                find_objects(done.stdout, ("score", "assertions"))
                case.notice(
                    f"the judge `{self.name}` printed a score, which does not count: "
                    "`exit_code: true` declares that its exit code is the result"
                )
            return _score_code(done, program.hint)
        return self._read_output(done, program.hint, case)

    def _read_output(self, done: process.Completed, hint: str, case: Case) -> Score:
        """The score that the program printed. Without one, a code that is not 0 scores 0, unless
        standard error says what went wrong; the code 0 alone does not pass, because a program that
        never calls its main function exits with it, too."""
        stdout, problem = done.stdout, ""
        if done.returncode != 0 and ("{" in stdout or done.stderr):
            problem = f"the judge {done.failure}"
        elif done.returncode != 0:
            return _score_code(done, hint)
        elif "{" not in stdout:
            problem = (
                "the judge printed no JSON object and ended with exit code 0; let it print "
                '{"score": …}, or write `exit_code: true` if its exit code is the result'
            )
        else:
            try:
                objects = find_objects(stdout, ("score", "assertions"))
                score = read_score(objects[-1], share=True)
            except UnreadableReply as error:
                problem = f"the judge's output cannot be read: {error}"
            else:
                if any(printed.get("score") != objects[-1].get("score") for printed in objects):
                    case.notice(
                        f"the judge `{self.name}` printed {len(objects)} JSON objects with "
                        "different scores; the last one counts"
                    )
                return score
        raise child_error("evaluator", problem, f"{stdout.strip()}\n{done.stderr.strip()}", hint)


def _score_code(done: process.Completed, hint: str) -> Score:
    """The score of the exit code alone; the output is the hit or the miss."""
    text = done.stdout.strip() or done.stderr.strip()
    text = cut(text, _QUOTED_CHARACTERS) or f"exit code {done.returncode}"
    if done.returncode == 0:
        return Score(1.0, hits=(text,))
    return Score(0.0, misses=(text,), reasoning=hint)
