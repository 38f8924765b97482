"""`summary.json`: the outcome for programs. Scores and rates are 0-1, costs US dollars.

Names are camelCase like those of the results."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    AliasChoices,
    AliasGenerator,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
)
from pydantic.alias_generators import to_camel

from agentevals_action import __version__
from agentevals_action.model.baseline import BaselineInfo, BaselineOrigin
from agentevals_action.model.comparison import (
    ArmDifference,
    ChangeKind,
    Difference,
    Evidence,
    Increase,
    Outcome,
    PairwiseComparison,
    TestComparison,
)
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.quarantine import Quarantine
from agentevals_action.model.result import ErrorInfo, SuiteSummary, Verdict
from agentevals_action.model.run import Edit, Level, Selection
from agentevals_action.model.trace import Spending
from agentevals_action.reports.view.judges import AdvisoryJudge
from agentevals_action.reports.view.models import ReportedTest, ReportView


def _key(kind: str) -> str:
    return to_camel(kind.replace(" ", "_"))


def _changes(tests: Iterable[TestComparison | ReportedTest]) -> dict[str, int]:
    counts = Counter(
        test.comparison.change if isinstance(test, ReportedTest) else test.change for test in tests
    )
    return {_key(change): counts[change] for change in ChangeKind}


def _sizes(groups: Mapping[str, Sequence[ReportedTest]]) -> dict[str, int]:
    return {key: len(tests) for key, tests in groups.items()}


def _is_listed(test: TestComparison) -> bool:
    is_changed = test.change is not ChangeKind.UNCHANGED
    return bool(is_changed or test.gates_removed or test.quarantine or test.by_base)


def _at(*path: str, **options: Any) -> Any:
    """A field that is the attribute at a path from the object of the entry."""
    return Field(validation_alias=AliasPath(*path), **options)


_Key = Annotated[str, BeforeValidator(_key)]
_Changes = Annotated[Mapping[str, int], BeforeValidator(_changes)]
_TextOrNull = Annotated[str | None, BeforeValidator(lambda value: str(value) if value else None)]


class _Entry(BaseModel):
    """An object of the summary, read from the attributes of a noun."""

    model_config = ConfigDict(
        frozen=True,
        from_attributes=True,
        alias_generator=AliasGenerator(serialization_alias=to_camel),
        defer_build=True,
        json_schema_serialization_defaults_required=True,
    )


class BaseScoringEntry(_Entry):
    """Head's answer as base's evaluators score it."""

    verdict: Verdict | None = _at("result", "verdict")
    score: float | None = _at("result", "score")
    gates_failed: tuple[str, ...] = _at("result", "gates_failed")
    failed_on_base: tuple[str, ...]
    is_worse: bool
    error: ErrorInfo | None = _at("result", "error")


class TestEntry(_Entry):
    """A test that is not unchanged, or that an exception or another scoring concerns."""

    id: str
    gates_lost: tuple[str, ...]
    gates_removed: tuple[str, ...]
    rescored: bool
    reason: str
    conversation_id: str | None = Field(
        None,
        validation_alias=AliasChoices(
            AliasPath("head", "conversation_id"), AliasPath("base", "conversation_id")
        ),
    )
    change: _Key
    base: Verdict | None = _at("base", "verdict", default=None)
    head: Verdict | None = _at("head", "verdict", default=None)
    gates_failed: tuple[str, ...] = _at("head", "gates_failed", default=())
    evidence: Evidence | None
    quarantine: Quarantine | None
    accepted_by: _TextOrNull
    by_base_evaluators: BaseScoringEntry | None = _at("by_base")


class VariantTestEntry(_Entry):
    """A test as declared and in the variant; `reason` states why it does not count."""

    id: str
    declared: Verdict | None = _at("declared", "verdict", default=None)
    variant: Verdict | None = _at("variant", "verdict", default=None)
    reason: str


class VariantEntry(_Entry):
    """Another arm of a suite: `first` by the samples of the run, `fresh` by those of the
    confirmation. `stored` are the tests whose results are of an earlier run."""

    name: str = _at("run", "variant", "name")
    target: str | None = _at("run", "variant", "target")
    skill: bool = _at("run", "variant", "skill")
    must: str | None = _at("run", "variant", "must")
    stored: tuple[str, ...] = _at("run", "stored")
    outcome: Outcome | None
    problem: str
    first: ArmDifference | None
    fresh: ArmDifference | None
    tests: tuple[VariantTestEntry, ...]
    summary: SuiteSummary | None


class SuiteEntry(_Entry):
    """A suite on both sides. `changes` counts its tests by their change."""

    path: str
    base_path: str | None = _at("run", "selection", "base_path")
    name: str = _at("run", "name")
    label: str = _at("run", "label")
    runner: str = _at("run", "runner")
    problem: str = _at("run", "base", "problem")
    is_new: bool = _at("run", "base", "is_new")
    broken: _TextOrNull = _at("run", "base", "broken")
    head: SuiteSummary | None
    base: SuiteSummary | None
    origin: BaselineOrigin | None = _at("run", "base", "origin")
    score: Difference | None
    cost_usd: Difference | None = _at("cost")
    duration_ms: Difference | None = _at("duration")
    changes: _Changes = _at("tests")
    tests: Annotated[
        tuple[TestEntry, ...], BeforeValidator(lambda tests: tuple(filter(_is_listed, tests)))
    ]
    edits: tuple[Edit, ...] = _at("run", "edits")
    variants: tuple[VariantEntry, ...]
    pairwise: tuple[PairwiseComparison, ...]
    increases: tuple[Increase, ...]


class Summary(_Entry):
    """The file `summary.json`."""

    schema_version: Literal[1] = Field(1, serialization_alias="schema")
    version: str = Field(default_factory=lambda: __version__)
    outcome: Outcome = _at("review", "decision", "outcome")
    exit_code: int = _at("review", "decision", "exit_code")
    reasons: tuple[str, ...] = _at("review", "decision", "reasons")
    waived: tuple[str, ...] = _at("review", "decision", "waived")
    conclusion: str = _at("review", "decision", "conclusion")
    base_sha: str | None = _at("review", "run", "base_sha")
    uncommitted: tuple[str, ...] = _at("review", "run", "uncommitted")
    test_globs: tuple[str, ...] = _at("review", "run", "test_globs")
    samples: int = _at("review", "run", "samples")
    duration_ms: float = _at("review", "run", "duration_ms")
    gone_suites: tuple[str, ...] = _at("review", "run", "gone_suites")
    head_sha: _TextOrNull = _at("review", "run", "head_sha")
    baseline: BaselineInfo = _at("review", "run", "baseline")
    changes: _Changes = _at("tests")
    groups: Annotated[Mapping[str, int], BeforeValidator(_sizes)]
    suites: tuple[SuiteEntry, ...] = _at("review", "suites")
    selections: tuple[Selection, ...] = _at("review", "run", "selections")
    errors: Annotated[
        tuple[Diagnostic, ...], BeforeValidator(lambda run: run.diagnostics(Level.ERROR))
    ] = _at("review", "run")
    warnings: Annotated[
        tuple[Diagnostic, ...], BeforeValidator(lambda run: run.diagnostics(Level.WARNING))
    ] = _at("review", "run")
    advisory_judges: tuple[AdvisoryJudge, ...]
    spent: Spending = _at("spending")
    notices: tuple[str, ...]


def review_summary(view: ReportView) -> str:
    """The summary of a review."""
    document = Summary.model_validate(view).model_dump(mode="json", by_alias=True)
    # ASCII: an agent's answer may contain lone surrogates, which UTF-8 cannot encode.
    return json.dumps(document, indent=2, allow_nan=False) + "\n"
