"""The results of `claude plugin eval`: one JSON document for the cases of a plugin, with a trace of
each run. https://code.claude.com/docs/en/plugin-evals#json-result"""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Literal

from pydantic import AliasPath, Field, ValidationError

from agentevals_action.formatting import list_paths
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.result import Record
from agentevals_action.model.suite import Suite
from agentevals_action.model.trace import Usage, total
from agentevals_action.runners.formats.base import (
    Amount,
    Check,
    Format,
    ResultsError,
    Row,
    Selection,
    get_content,
    inside,
    place_in,
    read_file,
)
from agentevals_action.targets.dialects.usage import read_usage
from agentevals_action.validation.field_errors import shorten

_FILE = "aggregate-result.json"
_OPTIONS = (
    *("--trust-plugin", "--ablation", "none", "--runs", "{SAMPLES}", "--no-publish"),
    *("--output-dir", "{RESULTS}", "--keep-temp"),
)
_CASE_FILES = ("prompt.md", "case.yaml")
#: The only error that the agent causes; a time limit also ends a run whose API does not answer.
_TURNS = re.compile(r"exit 1: Reached maximum number of turns \(\d+\)")
#: What a glob of `--case` may take literally; `?` stands for any other sign.
_NOT_LITERAL = re.compile(r"[^\w .:/@+-]")


class _Grade(Record):
    name: str
    passed: bool
    explanation: str = ""
    scored: bool = True

    def convert(self) -> Check:
        return Check(self.name, self.passed if self.scored else None, reason=self.explanation)


class _Run(Record):
    """A run of a case. Its cost is at list prices, and contains the cost of the judge."""

    score: float
    passed: bool
    error: str | None = None
    violation: str | None = inside("aborted", "reason")
    skipped_paid_graders: bool = False
    graders: tuple[_Grade, ...] = ()
    cost_usd: Amount | None = None
    duration_seconds: Amount | None = None
    trace_path: str = ""

    @property
    def outage(self) -> str:
        """Why the run has no verdict; empty if it has one."""
        if self.error and not _TURNS.fullmatch(self.error):
            return self.error
        threw = (grade for grade in self.graders if grade.explanation.startswith("grader threw"))
        skipped = "its judges did not run" if self.skipped_paid_graders else ""
        return next((f"{grade.name}: {grade.explanation}" for grade in threw), skipped)


class _Case(Record):
    """A case; `dir` is relative to the plugin's folder."""

    name: str
    dir: str
    prompt_markdown: str
    graders: tuple[dict[str, Any], ...]
    runs: tuple[_Run, ...] = Field(validation_alias=AliasPath("arms", "with"), min_length=1)


class _Document(Record):
    schema_version: Literal[1]
    partial: bool
    partial_reason: str = ""
    case_filter: str | None = inside("suite", "caseFilter")
    tag_filters: tuple[str, ...] | None = inside("suite", "tagFilters")
    cases: tuple[_Case, ...]


class _Manifest(Record):
    evals: str | None = inside("experimental", "evals")


class _Result(Record):
    """The last line of a trace."""

    result: str = ""
    model_usage: dict[str, Any] = Field(default_factory=dict)


class ClaudeResults(Format):
    """Results of the cases of a plugin, whose manifest is the file of the suite. A verdict is
    Claude's own, by `--threshold`. The question of a test is its prompt and the files of its case
    and of the mocks; all other files of the plugin are the agent."""

    name = "claude"
    version = "version 1 of the results of `claude plugin eval`"
    program = "claude"
    command = ("plugin", "eval", "{SUITE}", *_OPTIONS)
    again = ("plugin", "eval", "{SUITE}", "{SELECTION}", *_OPTIONS)
    is_folder = True
    #: The traces that `--keep-temp` keeps are in the folder of the results.
    variables: ClassVar[Mapping[str, str]] = {
        "TMPDIR": "{RESULTS}",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    exit_codes = frozenset({0, 1})  # 1: a case below the threshold, or that could not be loaded

    def read(self, folder: Path, suite: Suite) -> Sequence[Row]:
        """One row for each run of a case with the plugin."""
        document = _Document.model_validate_json(read_file(folder, _FILE))
        if document.partial:
            raise ResultsError(f"it did not finish: {shorten(document.partial_reason)}")
        plugin = _Plugin(suite, self.find_folder(PurePosixPath(suite.path)))
        if lost := plugin.find_lost(document):
            raise ResultsError(f"it has no result of {list_paths(lost)}")
        return [_row(case, run, folder, plugin) for case in document.cases for run in case.runs]

    def select(self, rows: Sequence[Row], suite: Suite) -> Sequence[Selection]:
        """One start for each test: the last of several `--case` counts."""
        names = dict.fromkeys(_NOT_LITERAL.sub("?", row.id) for row in rows)
        return [Selection(words=(f"--case={name}",)) for name in names]


class _Plugin:
    """The files of a plugin. The files of its cases and the mocks are the questions."""

    def __init__(self, suite: Suite, folder: PurePosixPath) -> None:
        try:
            manifest = _Manifest.model_validate_json(get_content(suite, suite.path))
        except ValidationError:  # Claude takes the default, too
            manifest = _Manifest()
        self._suite, self._folder, self._evals = suite, folder, folder / (manifest.evals or "evals")
        self._paths = sorted(PurePosixPath(file.path) for file in suite.files)

    def find_lost(self, document: _Document) -> Sequence[str]:
        """The folders of cases that could not be loaded and are not in the results; none where a
        command filters, or names another folder with `--eval-dir`."""
        folders = {self._folder / case.dir for case in document.cases}
        written = {path.parent for path in self._paths if path.name in _CASE_FILES} - folders
        lost = [path for path in sorted(written) if not folders.intersection(path.parents)]
        is_filtered = document.case_filter or document.tag_filters
        is_known = not is_filtered and any(self._evals in path.parents for path in folders)
        return [str(path) for path in lost if is_known and self._evals in path.parents]

    def describe(self, case: _Case) -> tuple[Mapping[str, str], Location | None]:
        """The digests of the files of a case, without its graders, and of all mocks; its place."""
        folder, mocks = self._folder / case.dir, self._evals / "mocks"
        asked = [path for path in self._paths if folder in path.parents or mocks in path.parents]
        asked = [path for path in asked if folder / "graders" not in path.parents]
        contents = {str(path): get_content(self._suite, str(path)) for path in asked}
        digests = {path: sha256(content).hexdigest() for path, content in contents.items()}
        places = (place_in(self._suite, str(folder / name), 1) for name in _CASE_FILES)
        return digests, next(filter(None, places), None)


def _row(case: _Case, run: _Run, folder: Path, plugin: _Plugin) -> Row:
    result, (asked, location) = _read_trace(folder, run.trace_path), plugin.describe(case)
    usage = total(read_usage(figures) for figures in result.model_usage.values())
    return Row(
        id=case.name,
        passed=run.passed and not run.outage,
        error=run.outage,
        question=case.prompt_markdown,
        answer="" if run.outage else result.result,
        asked=[case.prompt_markdown, asked],
        graded=case.graders,
        checks=tuple(grade.convert() for grade in run.graders),
        score=run.score,
        reason=run.violation or run.error or "",
        usage=usage.or_else(Usage(cost_usd=run.cost_usd)),
        duration_ms=None if run.duration_seconds is None else run.duration_seconds * 1000,
        location=location,
    )


def _read_trace(folder: Path, path: str) -> _Result:
    """The end of a trace; empty if it was not kept, or the run was ended before."""
    name = "/".join(PurePosixPath(path).parts[-3:])
    try:
        return _Result.model_validate_json(read_file(folder, name).strip().rpartition(b"\n")[2])
    except (ValueError, ResultsError):
        return _Result()
