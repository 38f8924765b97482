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
    Difference,
    SuiteComparison,
    TestComparison,
)
from agentevals_action.model.edits import Edit, EditKind
from agentevals_action.model.result import SuiteSummary
from agentevals_action.model.review import Decision, Review
from agentevals_action.reports.view.models import ReportView

_SCHEMA = 1
_BASELINE = ("source", "wanted", "commit", "commit_time", "reason", "problem")
_SPENT = ("cost_usd", "cost_sources", "replies", "cached_replies", "unpriced_replies")
_Json = dict[str, Any]


def review_summary(view: ReportView) -> str:
    """The summary of a review."""
    review = view.review
    base = review.run.baseline
    document = {
        **_decision(review.decision),
        **_source(review),
        "conclusion": review.decision.conclusion,
        "baseSha": review.run.base_sha,
        "baseline": {
            **(_record(base, *_BASELINE) or {}),
            "tried": [_record(source, "source", "problem") for source in base.incomplete],
        },
        "samples": review.run.samples,
        "durationMs": review.run.duration_ms,
        "changes": _changes(test.comparison for test in view.tests),
        "groups": {key: len(tests) for key, tests in view.groups.items()},
        "suites": [_suite(suite) for suite in review.suites],
        "selections": [
            _record(selection, "path", "reasons", "files") for selection in review.run.selections
        ],
        "goneSuites": list(review.run.gone_suites),
        "errors": [diagnostic.entry() for diagnostic in review.run.invalid],
        "warnings": [diagnostic.entry() for diagnostic in review.run.warnings],
        "spent": _record(view.spending, *_SPENT),
        "notices": list(view.notices),
    }
    return _dump(document)


def _dump(document: _Json) -> str:
    # ASCII: an agent's answer may contain lone surrogates, which UTF-8 cannot encode.
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _decision(decision: Decision) -> _Json:
    return {
        "schema": _SCHEMA,
        "version": __version__,
        "outcome": decision.outcome,
        "exitCode": int(decision.exit_code),
        "reasons": list(decision.reasons),
        "waived": list(decision.waived),
    }


def _source(review: Review) -> _Json:
    """The commit of the results, what differed from it in the working tree, and the tests."""
    return {
        "headSha": review.run.head_sha or None,
        "uncommitted": list(review.run.uncommitted),
        "testGlobs": list(review.run.test_globs),
    }


def _record(data: object | None, *names: str) -> _Json | None:
    """Some fields of an object, None of None."""
    if data is None:
        return None
    return {to_camel(name): to_jsonable_python(getattr(data, name)) for name in names}


def _key(kind: ChangeKind | EditKind) -> str:
    return to_camel(kind.replace(" ", "_"))


def _changes(tests: Iterable[TestComparison]) -> dict[str, int]:
    counts = Counter(test.change for test in tests)
    return {_key(change): counts[change] for change in ChangeKind}


def _suite(suite: SuiteComparison) -> _Json:
    return {
        "path": suite.path,
        "basePath": suite.base_path,
        "name": suite.name,
        "head": _totals(suite.head),
        "base": _totals(suite.base),
        "problem": suite.problem,
        "note": suite.note,
        "origin": _record(
            suite.origin, "source", "commit", "is_ancestor", "time", "samples", "stale"
        ),
        "score": _difference(suite.score),
        "costUsd": _difference(suite.cost),
        "durationMs": _difference(suite.duration),
        "changes": _changes(suite.tests),
        "tests": [
            _test(test)
            for test in suite.tests
            if test.change is not ChangeKind.UNCHANGED
            or test.gates_removed
            or test.quarantine
            or test.by_base
        ],
        "edits": [_edit(edit) for edit in suite.edits],
    }


def _edit(edit: Edit) -> _Json:
    return {
        "kind": _key(edit.kind),
        "name": edit.name,
        "action": edit.action,
        "path": edit.location.path,
        "line": edit.location.line,
        "tests": list(edit.tests),
    }


def _difference(found: Difference | None) -> _Json | None:
    """Head minus base, the mean per sample; `low` and `high` bound the 95 % interval."""
    names = ("mean", "low", "high", "detectable", "pairs", "clusters", "is_change")
    return _record(found, *names)


def _totals(summary: SuiteSummary | None) -> _Json | None:
    if summary is None:
        return None
    fields = to_jsonable_python(summary)
    own = {name: fields[name] for name in fields if name not in ("evalPath", "dataset")}
    return {**own, "costUsd": summary.spent.cost_usd}


def _test(test: TestComparison) -> _Json:
    side = test.head or test.base
    return {
        "id": test.id,
        "conversationId": side.conversation_id if side else None,
        "change": _key(test.change),
        "base": test.base.verdict if test.base else None,
        "head": test.head.verdict if test.head else None,
        "gatesFailed": list(test.head.gates_failed) if test.head else [],
        **(_record(test, "gates_lost", "gates_removed", "regraded", "reason") or {}),
        "evidence": _record(test.evidence, "finding", "base", "head", "needed", "chance", "reason"),
        "quarantine": _record(test.quarantine, "owner", "reason", "expires"),
        "acceptedBy": test.accepted_by or None,
        "byBaseEvaluators": _base_scoring(test.by_base),
    }


def _base_scoring(found: BaseScoring | None) -> _Json | None:
    if found is None:
        return None
    result = found.result
    return {
        **(_record(result, "verdict", "score") or {}),
        "gatesFailed": list(result.gates_failed),
        "failedOnBase": list(found.failed_on_base),
        "isWorse": found.is_worse,
        "error": _record(result.error, "kind", "message") if result.verdict is None else None,
    }
