"""`summary.json`: the outcome, its reasons and the figures of every suite, for programs.

Names are camelCase like those of the results."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import date
from typing import Any, ClassVar, TypeVar

from pydantic import ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

from agentevals_action import __version__
from agentevals_action.model.baseline import BaselineInfo, BaselineOrigin
from agentevals_action.model.comparison import (
    BaseScoring,
    ChangeKind,
    Difference,
    Evidence,
    SuiteComparison,
    TestComparison,
)
from agentevals_action.model.edits import EditKind
from agentevals_action.model.result import CAMEL_CASE, ErrorInfo, SuiteSummary, Verdict
from agentevals_action.model.review import Outcome
from agentevals_action.model.run import Selection
from agentevals_action.model.usage import Spending
from agentevals_action.reports.view.models import ReportView

E = TypeVar("E")
_SCHEMA = 1


@dataclass(frozen=True)
class QuarantineEntry:
    """The entry of the quarantine that covers a test."""

    owner: str
    reason: str
    expires: date


@dataclass(frozen=True)
class BaseScoringEntry:
    """Head's answer as base's evaluators score it."""

    verdict: Verdict | None
    score: float | None
    gates_failed: tuple[str, ...]
    failed_on_base: tuple[str, ...]
    is_worse: bool
    error: ErrorInfo | None


@dataclass(frozen=True)
class TestEntry:
    """A test that is not unchanged, or that an exception or another scoring concerns."""

    id: str
    gates_lost: tuple[str, ...]
    gates_removed: tuple[str, ...]
    regraded: bool
    reason: str
    conversation_id: str | None
    change: str
    base: Verdict | None
    head: Verdict | None
    gates_failed: tuple[str, ...]
    evidence: Evidence | None
    quarantine: QuarantineEntry | None
    accepted_by: str | None
    by_base_evaluators: BaseScoringEntry | None


@dataclass(frozen=True)
class EditEntry:
    """What the change does to tests, evaluators and targets."""

    name: str
    action: str
    tests: tuple[str, ...]
    path: str
    line: int
    kind: str


@dataclass(frozen=True)
class SuiteEntry:
    """A suite on both sides. `changes` counts its tests by their change."""

    path: str
    base_path: str | None
    name: str
    problem: str
    is_new: bool
    broken: str | None
    head: SuiteSummary | None
    base: SuiteSummary | None
    origin: BaselineOrigin | None
    score: Difference | None
    cost_usd: Difference | None
    duration_ms: Difference | None
    changes: Mapping[str, int]
    tests: tuple[TestEntry, ...]
    edits: tuple[EditEntry, ...]


@dataclass(frozen=True)
class DiagnosticEntry:
    """An error or a warning about a suite."""

    path: str
    line: int
    column: int
    problem: str
    advice: str


@dataclass(frozen=True)
class Summary:
    """The file `summary.json`."""

    __pydantic_config__: ClassVar[ConfigDict] = CAMEL_CASE

    schema: int
    version: str
    outcome: Outcome
    exit_code: int
    reasons: tuple[str, ...]
    waived: tuple[str, ...]
    conclusion: str
    base_sha: str | None
    uncommitted: tuple[str, ...]
    test_globs: tuple[str, ...]
    samples: int
    duration_ms: float
    gone_suites: tuple[str, ...]
    head_sha: str | None
    baseline: BaselineInfo
    changes: Mapping[str, int]
    groups: Mapping[str, int]
    suites: tuple[SuiteEntry, ...]
    selections: tuple[Selection, ...]
    errors: tuple[DiagnosticEntry, ...]
    warnings: tuple[DiagnosticEntry, ...]
    spent: Spending
    notices: tuple[str, ...]


def review_summary(view: ReportView) -> str:
    """The summary of a review."""
    review = view.review
    run = review.run
    summary = _entry(
        Summary,
        review.decision,
        run,
        schema=_SCHEMA,
        version=__version__,
        head_sha=run.head_sha or None,
        changes=_changes(test.comparison for test in view.tests),
        groups={key: len(tests) for key, tests in view.groups.items()},
        suites=tuple(map(_suite, review.suites)),
        selections=run.selections,
        errors=tuple(_entry(DiagnosticEntry, error, error.location) for error in run.invalid),
        warnings=tuple(_entry(DiagnosticEntry, found, found.location) for found in run.warnings),
        spent=view.spending,
        notices=view.notices,
    )
    document = TypeAdapter(Summary).dump_python(summary, mode="json")
    # ASCII: an agent's answer may contain lone surrogates, which UTF-8 cannot encode.
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _entry(kind: type[E], /, *sources: object, **facts: object) -> E:
    """An entry with these facts, and for its other fields the attributes of the sources."""
    names = {field.name for field in fields(kind)} - facts.keys()  # type: ignore[arg-type]  # a dataclass
    found: dict[str, Any] = {
        name: getattr(source, name) for source in sources for name in names if hasattr(source, name)
    }
    return kind(**found, **facts)


def _key(kind: ChangeKind | EditKind) -> str:
    return to_camel(kind.replace(" ", "_"))


def _changes(tests: Iterable[TestComparison]) -> dict[str, int]:
    counts = Counter(test.change for test in tests)
    return {_key(change): counts[change] for change in ChangeKind}


def _suite(suite: SuiteComparison) -> SuiteEntry:
    return _entry(
        SuiteEntry,
        suite.run,
        suite.run.selection,
        broken=suite.run.broken and str(suite.run.broken),
        head=suite.head,
        base=suite.base,
        score=suite.score,
        cost_usd=suite.cost,
        duration_ms=suite.duration,
        changes=_changes(suite.tests),
        tests=tuple(_test(test) for test in suite.tests if _is_listed(test)),
        edits=tuple(
            _entry(EditEntry, edit, edit.location, kind=_key(edit.kind)) for edit in suite.run.edits
        ),
    )


def _is_listed(test: TestComparison) -> bool:
    is_changed = test.change is not ChangeKind.UNCHANGED
    return bool(is_changed or test.gates_removed or test.quarantine or test.by_base)


def _test(test: TestComparison) -> TestEntry:
    side = test.head or test.base
    return _entry(
        TestEntry,
        test,
        conversation_id=side.conversation_id if side else None,
        change=_key(test.change),
        base=test.base.verdict if test.base else None,
        head=test.head.verdict if test.head else None,
        gates_failed=test.head.gates_failed if test.head else (),
        quarantine=test.quarantine and _entry(QuarantineEntry, test.quarantine),
        accepted_by=test.accepted_by or None,
        by_base_evaluators=_base_scoring(test.by_base),
    )


def _base_scoring(found: BaseScoring | None) -> BaseScoringEntry | None:
    if found is None:
        return None
    result = found.result
    error = result.error if result.verdict is None else None
    return _entry(BaseScoringEntry, result, found, error=error)
