"""`summary.json`: the outcome for programs."""

import json
from typing import Any

from agentevals_action.model.review import Review
from agentevals_action.reports.summary_json import review_summary
from agentevals_action.reports.view.build import build_view
from tests.support import reviews


def summary_of(review: Review) -> Any:
    return json.loads(review_summary(build_view(review)))


def test_summary_json__decision_counts_and_suites() -> None:
    data = summary_of(reviews.regression_and_gate())
    assert (data["outcome"], data["exitCode"], data["conclusion"]) == ("failed", 1, "failure")
    assert data["reasons"] == ["2 tests regressed (1 of them failed a required gate)"]
    assert data["changes"] == {
        "regressed": 2,
        "improved": 1,
        "unchanged": 9,
        "stillFailing": 1,
        "flaky": 0,
        "inconclusive": 0,
        "new": 1,
        "removed": 0,
        "questionChanged": 0,
        "notComparable": 0,
        "errorOnHead": 0,
        "errorOnBase": 0,
    }
    support, tone = data["suites"]
    assert support["head"]["passRate"] == 0.5
    assert (
        support["head"]["pass"],
        support["head"]["fail"],
        support["head"]["borderline"],
        support["head"]["error"],
    ) == (3, 2, 1, 0)
    assert support["tests"][0] == {
        "id": "refund-over-limit",
        "conversationId": None,
        "change": "regressed",
        "base": "pass",
        "head": "fail",
        "gatesFailed": ["no-unapproved-refund"],
        "gatesLost": ["no-unapproved-refund"],
        "gatesRemoved": [],
        "regraded": False,
        "reason": "",
        "evidence": None,
        "quarantine": None,
        "acceptedBy": None,
        "byBaseEvaluators": None,
    }
    assert tone["tests"] == []
    assert support["head"]["usage"]["costUsd"] == support["head"]["costUsd"]
    assert (
        support["head"]["samples"],
        support["head"]["samplesWithCost"],
        support["head"]["usage"]["inputTokens"],
    ) == (6, 6, None)


def test_summary_json__what_was_spent_and_who_spoke_with_whom() -> None:
    data = summary_of(reviews.conversations())
    spent = data["spent"]
    assert (spent["replies"], spent["cachedReplies"], spent["unpricedReplies"]) == (24, 2, 1)
    assert spent["costUsd"] == sum(
        side["costUsd"] for side in (data["suites"][0]["head"], data["suites"][0]["base"])
    )
    assert [test["conversationId"] for test in data["suites"][0]["tests"][:2]] == [
        "complaint",
        "booking",
    ]
    assert len(data["notices"]) == 8


def test_summary_json__what_is_believed_and_what_does_not_count() -> None:
    data = summary_of(reviews.believable())
    support, tone = data["suites"]
    assert {key: number for key, number in data["groups"].items() if number} == {
        "failedGates": 2,
        "errors": 1,
        "accepted": 1,
        "undecided": 2,
        "flaky": 1,
        "quarantined": 2,
    }
    assert data["changes"]["inconclusive"] == 3
    assert [source["source"] for source in data["baseline"]["tried"]] == ["branch", "file"]
    assert support["origin"] == {
        "source": "branch",
        "commit": "0ddba11" + "0" * 33,
        "isAncestor": True,
        "time": "2025-12-15T09:30:00Z",
        "samples": 2,
        "stale": True,
    }
    assert support["score"].keys() == {
        "mean",
        "low",
        "high",
        "detectable",
        "pairs",
        "clusters",
        "isChange",
    }
    assert (support["score"]["isChange"], tone["score"]["isChange"], support["durationMs"]) == (
        True,
        False,
        None,
    )
    tests = {test["id"]: test for suite in data["suites"] for test in suite["tests"]}
    assert tests["refund-over-limit"]["evidence"] == {
        "finding": "regressed",
        "base": {"successes": 20, "trials": 20},
        "head": {"successes": 0, "trials": 3},
        "needed": 2,
        "chance": 0.00042,
        "reason": "",
    }
    assert tests["german"]["quarantine"] == {
        "owner": "grace",
        "reason": "the translation service is replaced until then",
        "expires": "2026-03-01",
    }
    assert tests["upsells"]["acceptedBy"] == "ada"


def test_summary_json__what_is_gone_broken_or_unknown() -> None:
    data = summary_of(reviews.gone())
    assert data["goneSuites"] == ["evals/safety/EVAL.yaml"]
    assert data["suites"][0]["tests"][0]["gatesRemoved"] == ["no-unapproved-refund"]
    errors = summary_of(reviews.invalid_suite())["errors"]
    assert errors[0]["line"] == 12
    base = summary_of(reviews.no_base())
    assert base["baseline"]["problem"].startswith("`prepare` failed")
    assert base["suites"][0]["base"] is None


def test_summary_json__edits_and_the_scores_of_base_s_evaluators() -> None:
    (suite,) = summary_of(reviews.edited())["suites"]
    assert suite["edits"][0] == {
        "kind": "requiredGate",
        "name": "no-unapproved-refund",
        "action": "changed",
        "path": reviews.PATH,
        "line": 19,
        "tests": ["refund-over-limit"],
    }
    assert [test["byBaseEvaluators"] for test in suite["tests"]][0::2] == [
        {
            "verdict": "fail",
            "score": 0.2,
            "gatesFailed": ["no-unapproved-refund", "quality/safe"],
            "failedOnBase": ["quality/safe"],
            "isWorse": True,
            "error": None,
        },
        {
            "verdict": None,
            "score": None,
            "gatesFailed": [],
            "failedOnBase": [],
            "isWorse": False,
            "error": {"kind": "target", "message": "`prepare` failed"},
        },
    ]
