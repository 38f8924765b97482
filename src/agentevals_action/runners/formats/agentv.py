"""The results of AgentV: `index.jsonl` in a folder, with the texts of each test beside it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import AliasPath, Field

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.result import Record
from agentevals_action.model.suite import Suite
from agentevals_action.model.trace import Usage
from agentevals_action.runners.formats.base import (
    Amount,
    Check,
    Count,
    Format,
    ResultsError,
    Row,
    Selection,
    get_content,
    inside,
    objects_in,
    read_file,
)
from agentevals_action.system.files.regular_files import is_present

_OPTIONS = ("--output", "{RESULTS}", "--no-cache")
_INDEX, _PLAN = "index.jsonl", "benchmark.json"
#: What AgentV 5 writes in place of the plan.
_LATER = "summary.json"
#: Fields in the bundle of a test that do not score its answer.
_NOT_GRADED = frozenset({"id", "input", "input_files"})


class _Assertion(Record):
    text: str
    passed: bool


class _Score(Record):
    name: str
    score: float | None = None
    verdict: str
    assertions: tuple[_Assertion, ...] = ()

    def convert(self) -> Check:
        passed = {"pass": True, "fail": False}.get(self.verdict)
        misses = "; ".join(assertion.text for assertion in self.assertions if not assertion.passed)
        return Check(self.name, passed, self.score, misses)


class _Row(Record):
    """A line of the index. Paths are those of files of the test; the bundle has copies of files
    where the test names any."""

    test_id: str
    target: str
    score: float
    execution_status: Literal["ok", "quality_failure", "execution_error"]
    error: str = ""
    scores: tuple[_Score, ...] = ()
    input_tokens: Count | None = inside("token_usage", "input")
    output_tokens: Count | None = inside("token_usage", "output")
    cached_tokens: Count | None = inside("token_usage", "cached")
    cost_usd: Amount | None = None
    duration_ms: Amount | None = None
    input_path: str = ""
    answer_path: str = ""
    eval_path: str = ""
    files_path: str = ""
    graders_path: str = ""


class _Plan(Record):
    number: int = Field(validation_alias=AliasPath("metadata", "planned_test_count"))


class AgentvResults(Format):
    """Results of AgentV 4. A test's verdict is its `execution_status`, by AgentV's thresholds. The
    id of a test has its target where the suite runs with several."""

    name = "agentv"
    version = "the index.jsonl of AgentV 4.42"
    program = "agentv"
    command = ("eval", "{SUITE}", *_OPTIONS)
    again = (*command, "{SELECTION}")
    configuration = (".agentv",)
    #: The check for updates is a program that outlives its parent.
    variables: ClassVar[Mapping[str, str]] = {
        "AGENTV_NO_UPDATE_CHECK": "1",
        "AGENTV_DATA_DIR": "{STATE}",
    }
    #: 1: a threshold or a budget of the suite; 2: an error in every test. A crash is 1, too: then
    #: tests of its plan are missing.
    exit_codes = frozenset({0, 1, 2})

    def read(self, folder: Path, suite: Suite) -> Sequence[Row]:
        """One row for each test and target."""
        if is_present(folder / _LATER):
            raise ResultsError(f"it wrote {_LATER}, as AgentV 5; {self.version} is known")
        rows = [_Row.model_validate_json(line) for line in read_file(folder, _INDEX).splitlines()]
        planned = _Plan.model_validate_json(read_file(folder, _PLAN)).number
        if len(rows) < planned:
            problem = f"its {_INDEX} has {len(rows)} of {planned} results: AgentV did not finish"
            raise ResultsError(problem)
        has_targets = len({row.target for row in rows}) > 1
        written = objects_in(get_content(suite, suite.path), suite.path)
        places = {_id_in(test): place for test, place in reversed([*written])}
        return [_convert(row, folder, suite, has_targets, places) for row in rows]

    def select(self, rows: Sequence[Row], suite: Suite) -> Sequence[Selection]:
        """One start: `--test-id` takes patterns. A test that depends on others runs with all."""
        if any(row.source is None for row in rows):
            return ()
        ids = dict.fromkeys(row.source for row in rows)
        return (Selection(words=tuple(f"--test-id={_escape(name)}" for name in ids)),)


def _convert(
    row: _Row, folder: Path, suite: Suite, has_targets: bool, places: Mapping[str, Location]
) -> Row:
    def text(path: str) -> str:
        content = read_file(folder, path).decode("utf-8", "replace") if path else ""
        return content.replace(f"{suite.root}/", "")  # the digests of both sides must be equal

    failed = row.execution_status == "execution_error"
    question, bundle = text(row.input_path), objects_in(text(row.eval_path).encode(), "")
    test = next((entry for entry, _ in bundle if _id_in(entry) == row.test_id), {})
    graded = {name: value for name, value in test.items() if name not in _NOT_GRADED}
    # A file that the test names may hold the question, or a judge.
    names_files = bool(row.files_path or row.graders_path)
    return Row(
        id=f"{row.test_id} [{row.target}]" if has_targets else row.test_id,
        passed=row.execution_status == "ok",
        error=(row.error or "AgentV gives no reason") if failed else "",
        question=question.removeprefix("@[user]:\n"),
        answer="" if failed else text(row.answer_path),
        target=row.target,
        asked=None if names_files else question or None,
        graded=None if names_files else graded or None,
        checks=tuple(score.convert() for score in row.scores),
        score=None if failed else row.score,
        usage=Usage(row.input_tokens, row.output_tokens, row.cached_tokens, cost_usd=row.cost_usd),
        duration_ms=row.duration_ms,
        location=places.get(row.test_id),
        source=None if "depends_on" in test else row.test_id,
    )


def _id_in(test: Mapping[str, Any]) -> str:
    return str(test.get("id"))


def _escape(test_id: str) -> str:
    """A pattern of `--test-id` that matches one id."""
    return re.sub(r"([\\*?\[\]{}()!+@|])", r"\\\1", test_id)
