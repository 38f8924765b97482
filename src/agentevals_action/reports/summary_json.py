"""`summary.json`: the outcome, its reasons, and the figures of every suite, for programs."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from agentevals_action import __version__
from agentevals_action.model.comparison import (
    Change,
    Decision,
    Difference,
    Evidence,
    History,
    Origin,
    Review,
    SuiteComparison,
    TestComparison,
)
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.quarantine import Quarantine
from agentevals_action.model.result import SuiteSummary
from agentevals_action.reports.view import cost
from agentevals_action.system.tree_files import write_atomically

_SCHEMA = 1


@dataclass(frozen=True)
class SummaryFile:
    """`summary.json`, camelCase like the results."""

    filename: str = "summary.json"

    def write(self, review: Review, folder: Path) -> None:
        """Writes the summary."""
        # Lone surrogates stay escaped, so that the file is valid UTF-8 whatever an agent answered.
        write_atomically(
            folder / self.filename, json.dumps(_document(review), indent=2, allow_nan=False) + "\n"
        )


def write_run_summary(path: Path, decision: Decision, suites: Sequence[SuiteSummary]) -> None:
    """Writes the same for a run that compares with nothing: the outcome, its reasons, and the
    totals of every suite."""
    document = {
        "schema": _SCHEMA,
        "version": __version__,
        "outcome": decision.outcome,
        "exitCode": int(decision.exit_code),
        "reasons": list(decision.reasons),
        "waived": list(decision.waived),
        "suites": [
            {"path": suite.eval_path, "name": suite.dataset, "head": _totals(suite)}
            for suite in suites
        ],
    }
    write_atomically(path, json.dumps(document, indent=2, allow_nan=False) + "\n")


def _document(review: Review) -> dict[str, Any]:
    tests = [test for suite in review.suites for test in suite.tests]
    base = review.baseline
    return {
        "schema": _SCHEMA,
        "version": __version__,
        "outcome": review.decision.outcome,
        "exitCode": int(review.decision.exit_code),
        "conclusion": review.decision.conclusion,
        "reasons": list(review.decision.reasons),
        "waived": list(review.decision.waived),
        "headSha": review.head_sha,
        "baseSha": review.base_sha,
        "baseline": {
            "source": base.source,
            "wanted": base.wanted,
            "commit": base.commit,
            "commitTime": base.commit_time,
            "reason": base.reason,
            "problem": base.problem,
            "tried": [{"source": rung.source, "problem": rung.problem} for rung in base.tried],
        },
        "samples": review.samples,
        "durationMs": review.duration_ms,
        "changes": _changes(tests),
        "accepted": sum(bool(test.accepted_by) and test.quarantine is None for test in tests),
        "quarantined": sum(test.quarantine is not None for test in tests),
        "suites": [_suite(suite) for suite in review.suites],
        "selections": [
            {"path": one.path, "reasons": list(one.reasons), "files": list(one.files)}
            for one in review.selections
        ],
        "goneSuites": list(review.gone_suites),
        "faults": [_error(diagnostic) for diagnostic in review.invalid],
        "warnings": [_error(diagnostic) for diagnostic in review.warnings],
        "spent": _spent(cost.of_review(review)),
        "notices": list(review.notices),
    }


def _spent(spent: cost.Spent) -> dict[str, Any]:
    return {
        "costUsd": spent.cost_usd,
        "replies": spent.replies,
        "cachedReplies": spent.cached,
        "unpricedReplies": spent.unpriced,
    }


def _changes(tests: Iterable[TestComparison]) -> dict[str, int]:
    counts = dict.fromkeys(Change, 0)
    for test in tests:
        counts[test.change] += 1
    return {_camel(change): number for change, number in counts.items()}


def _suite(suite: SuiteComparison) -> dict[str, Any]:
    return {
        "path": suite.path,
        "basePath": suite.base_path,
        "name": suite.name,
        "head": _totals(suite.head),
        "base": _totals(suite.base),
        "problem": suite.problem,
        "note": suite.note,
        "origin": _origin(suite.origin),
        "score": _difference(suite.score),
        "costUsd": _difference(suite.cost),
        "durationMs": _difference(suite.duration),
        "changes": _changes(suite.tests),
        "tests": [
            _test(test)
            for test in suite.tests
            if test.change is not Change.UNCHANGED or test.gates_removed or test.quarantine
        ],
    }


def _origin(origin: Origin | None) -> dict[str, Any] | None:
    if origin is None:
        return None
    return {
        "source": origin.source,
        "commit": origin.commit,
        "distance": origin.distance,
        "time": origin.time,
        "samples": origin.samples,
        "stale": origin.stale,
    }


def _difference(found: Difference | None) -> dict[str, Any] | None:
    """Head minus base, a sample's mean; `low` and `high` bound the 95 % interval."""
    if found is None:
        return None
    return {
        "mean": found.mean,
        "low": found.low,
        "high": found.high,
        "detectable": found.detectable,
        "pairs": found.pairs,
        "clusters": found.clusters,
        "isChange": found.is_change,
    }


def _totals(summary: SuiteSummary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    return {
        name: value
        for name, value in to_jsonable_python(summary).items()
        if name not in ("evalPath", "dataset")
    }


def _test(test: TestComparison) -> dict[str, Any]:
    side = test.head or test.base
    return {
        "id": test.id,
        "conversationId": side.conversation_id if side else None,
        "change": _camel(test.change),
        "base": test.base.verdict if test.base else None,
        "head": test.head.verdict if test.head else None,
        "gatesFailed": list(test.head.gates_failed) if test.head else [],
        "gatesLost": list(test.gates_lost),
        "gatesRemoved": list(test.gates_removed),
        "regraded": test.regraded,
        "reason": test.reason,
        "evidence": _evidence(test.evidence),
        "quarantine": _quarantine(test.quarantine),
        "acceptedBy": test.accepted_by or None,
    }


def _evidence(found: Evidence | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "finding": found.finding,
        "base": _history(found.base),
        "head": _history(found.head),
        "needed": found.needed,
        "chance": found.chance,
        "reason": found.reason,
    }


def _history(history: History) -> dict[str, int]:
    return {"successes": history.successes, "trials": history.trials}


def _quarantine(held: Quarantine | None) -> dict[str, str] | None:
    return (
        {"owner": held.owner, "reason": held.reason, "expires": str(held.expires)} if held else None
    )


def _error(diagnostic: Diagnostic) -> dict[str, Any]:
    place = diagnostic.location
    return {
        "path": place.path,
        "line": place.line,
        "column": place.column,
        "problem": diagnostic.problem,
        "advice": diagnostic.advice,
    }


def _camel(change: Change) -> str:
    first, *rest = change.split()
    return first + "".join(word.capitalize() for word in rest)
