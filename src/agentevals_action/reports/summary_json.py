"""`summary.json`: the outcome, its reasons and the figures of every suite, for programs.

Names are camelCase like those of the results."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from pydantic.alias_generators import to_camel
from pydantic_core import to_jsonable_python

from agentevals_action import __version__
from agentevals_action.model.comparison import (
    BaseScoring,
    ChangeKind,
    SuiteComparison,
    TestComparison,
)
from agentevals_action.model.edits import Edit, EditKind
from agentevals_action.model.result import SuiteSummary
from agentevals_action.reports.view.models import ReportView

_SCHEMA = 1
_DECISION = ("outcome", "exit_code", "reasons", "waived", "conclusion")
_RUN = ("base_sha", "uncommitted", "test_globs", "samples", "duration_ms", "gone_suites")
_BASELINE = ("source", "wanted", "commit", "commit_time", "reason", "problem")
_SPENT = ("cost_usd", "cost_sources", "replies", "cached_replies", "unpriced_replies")
_ORIGIN = ("source", "commit", "time", "samples", "stale")
#: Of head minus base, the mean per sample; `low` and `high` bound the 95 % interval.
_DIFFERENCE = ("mean", "low", "high", "detectable", "pairs", "clusters", "is_change")
_EVIDENCE = ("finding", "base", "head", "needed", "chance", "reason")
_Json = dict[str, Any]


def review_summary(view: ReportView) -> str:
    """The summary of a review."""
    review = view.review
    run = review.run
    tried = [_record(source, "source", "problem") for source in run.baseline.incomplete]
    document = {
        "schema": _SCHEMA,
        "version": __version__,
        **_record(review.decision, *_DECISION),
        **_record(run, *_RUN),
        "headSha": run.head_sha or None,
        "baseline": {**_record(run.baseline, *_BASELINE), "tried": tried},
        "changes": _changes(test.comparison for test in view.tests),
        "groups": {key: len(tests) for key, tests in view.groups.items()},
        "suites": [_suite(suite) for suite in review.suites],
        "selections": [
            _record(selection, "path", "reasons", "files") for selection in run.selections
        ],
        "errors": [diagnostic.entry() for diagnostic in run.invalid],
        "warnings": [diagnostic.entry() for diagnostic in run.warnings],
        "spent": _record(view.spending, *_SPENT),
        "notices": list(view.notices),
    }
    # ASCII: an agent's answer may contain lone surrogates, which UTF-8 cannot encode.
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _record(data: object, *names: str) -> _Json:
    """Some fields of an object."""
    return {to_camel(name): to_jsonable_python(getattr(data, name)) for name in names}


def _optional(data: object | None, *names: str) -> _Json | None:
    return None if data is None else _record(data, *names)


def _key(kind: ChangeKind | EditKind) -> str:
    return to_camel(kind.replace(" ", "_"))


def _changes(tests: Iterable[TestComparison]) -> dict[str, int]:
    counts = Counter(test.change for test in tests)
    return {_key(change): counts[change] for change in ChangeKind}


def _suite(suite: SuiteComparison) -> _Json:
    return {
        **_record(suite.run.selection, "path", "base_path"),
        **_record(suite.run, "name", "problem", "is_new"),
        "broken": suite.run.broken and str(suite.run.broken),
        "head": _totals(suite.head),
        "base": _totals(suite.base),
        "origin": _optional(suite.run.origin, *_ORIGIN),
        "score": _optional(suite.score, *_DIFFERENCE),
        "costUsd": _optional(suite.cost, *_DIFFERENCE),
        "durationMs": _optional(suite.duration, *_DIFFERENCE),
        "changes": _changes(suite.tests),
        "tests": [_test(test) for test in suite.tests if _is_listed(test)],
        "edits": [_edit(edit) for edit in suite.run.edits],
    }


def _edit(edit: Edit) -> _Json:
    place = _record(edit.location, "path", "line")
    return {**_record(edit, "name", "action", "tests"), **place, "kind": _key(edit.kind)}


def _totals(summary: SuiteSummary | None) -> _Json | None:
    if summary is None:
        return None
    fields: _Json = to_jsonable_python(summary)
    own = {name: fields[name] for name in fields if name not in ("evalPath", "dataset")}
    return {**own, "costUsd": summary.spent.cost_usd}


def _is_listed(test: TestComparison) -> bool:
    is_changed = test.change is not ChangeKind.UNCHANGED
    return bool(is_changed or test.gates_removed or test.quarantine or test.by_base)


def _test(test: TestComparison) -> _Json:
    side = test.head or test.base
    return {
        **_record(test, "id", "gates_lost", "gates_removed", "regraded", "reason"),
        "conversationId": side.conversation_id if side else None,
        "change": _key(test.change),
        "base": test.base.verdict if test.base else None,
        "head": test.head.verdict if test.head else None,
        "gatesFailed": list(test.head.gates_failed) if test.head else [],
        "evidence": _optional(test.evidence, *_EVIDENCE),
        "quarantine": _optional(test.quarantine, "owner", "reason", "expires"),
        "acceptedBy": test.accepted_by or None,
        "byBaseEvaluators": _base_scoring(test.by_base),
    }


def _base_scoring(found: BaseScoring | None) -> _Json | None:
    if found is None:
        return None
    result = found.result
    return {
        **_record(result, "verdict", "score", "gates_failed"),
        **_record(found, "failed_on_base", "is_worse"),
        "error": _optional(result.error, "kind", "message") if result.verdict is None else None,
    }
