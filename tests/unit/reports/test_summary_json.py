"""`summary.json`: the outcome for programs."""

import json
from typing import Any

import pytest

from agentevals_action.model.comparison import Review
from agentevals_action.reports.summary_json import review_summary
from agentevals_action.reports.view.build import build_view
from tests.support import reviews
from tests.support.schemas import closed_validator

#: Nothing is written that the published schema does not have.
SUMMARY = closed_validator("summary")


@pytest.mark.parametrize("name", reviews.SMALL)
def test_summary_json__has_the_published_schema(name: str) -> None:
    read_summary(reviews.REVIEWS[name]())


def read_summary(review: Review) -> dict[str, Any]:
    text = review_summary(build_view(review))
    assert text.isascii()
    data: dict[str, Any] = json.loads(text)
    SUMMARY.validate(data)
    return data


def test_summary_json__outcome_counts_and_suites() -> None:
    data = read_summary(reviews.regression_and_gate())
    assert (data["outcome"], data["exitCode"], data["conclusion"]) == ("failed", 1, "failure")
    assert data["reasons"] == ["2 tests regressed (1 of them failed a required gate)"]
    assert {change: number for change, number in data["changes"].items() if number} == {
        "regressed": 2,
        "improved": 1,
        "unchanged": 9,
        "stillFailing": 1,
        "new": 1,
    }
    assert {key: number for key, number in data["groups"].items() if number} == {
        "failedGates": 1,
        "regressions": 1,
        "improved": 1,
        "new": 1,
        "stillFailing": 1,
    }
    support, tone = data["suites"]
    head = support["head"]
    assert (head["pass"], head["fail"], head["borderline"], head["error"]) == (3, 2, 1, 0)
    assert (head["passRate"], head["samples"], head["samplesWithCost"]) == (0.5, 6, 6)
    assert head["usage"]["costUsd"] == head["costUsd"]
    assert support["tests"][0] == {
        "id": "refund-over-limit",
        "conversationId": None,
        "change": "regressed",
        "base": "pass",
        "head": "fail",
        "gatesFailed": ["no-unapproved-refund"],
        "gatesLost": ["no-unapproved-refund"],
        "gatesRemoved": [],
        "rescored": False,
        "reason": "",
        "evidence": None,
        "quarantine": None,
        "acceptedBy": None,
        "byBaseEvaluators": None,
    }
    assert tone["tests"] == []


def test_summary_json__a_suite_of_a_runner_has_its_name_and_no_unknown_figure() -> None:
    suites = {suite["path"]: suite for suite in read_summary(reviews.runners())["suites"]}
    bare, rich = suites["evals/test_agent.py"], suites["evals/promptfooconfig.yaml"]
    assert (bare["runner"], rich["runner"]) == ("pytest", "promptfoo")
    assert (bare["head"]["durationMs"], bare["head"]["costUsd"]) == (None, None)
    assert (rich["head"]["durationMs"], rich["head"]["costUsd"]) == (1680.0, 0.0042)
    assert read_summary(reviews.regression_and_gate())["suites"][0]["runner"] == ""


def test_summary_json__spending_conversations_and_notices() -> None:
    data = read_summary(reviews.conversations())
    spent, suite = data["spent"], data["suites"][0]
    assert (spent["replies"], spent["cachedReplies"], spent["unpricedReplies"]) == (24, 2, 1)
    assert spent["costUsd"] == suite["head"]["costUsd"] + suite["base"]["costUsd"]
    assert [test["conversationId"] for test in suite["tests"][:2]] == ["complaint", "booking"]
    assert len(data["notices"]) == 8


def test_summary_json__origin_confirmation_and_waivers() -> None:
    data = read_summary(reviews.believable())
    support, tone = data["suites"]
    assert [source["source"] for source in data["baseline"]["tried"]] == ["branch", "file"]
    assert support["origin"] == {
        "source": "branch",
        "commit": "0ddba11" + "0" * 33,
        "time": "2025-12-15T09:30:00Z",
        "samples": 2,
        "stale": True,
    }
    keys = {"mean", "low", "high", "detectable", "pairs", "clusters", "isChange"}
    assert support["score"].keys() == keys
    tests = {test["id"]: test for suite in (support, tone) for test in suite["tests"]}
    assert tests["refund-over-limit"]["evidence"] == {
        "finding": "regressed",
        "base": {"successes": 20, "trials": 20},
        "head": {"successes": 0, "trials": 3},
        "needed": 2,
        "chance": 0.00042,
        "reason": "",
    }
    assert (tests["german"]["quarantine"]["owner"], tests["german"]["quarantine"]["expires"]) == (
        "grace",
        "2026-03-01",
    )
    assert tests["upsells"]["acceptedBy"] == "ada"


def test_summary_json__what_is_gone_broken_or_unknown() -> None:
    data = read_summary(reviews.gone())
    assert data["goneSuites"] == ["evals/safety/EVAL.yaml"]
    assert data["suites"][0]["tests"][0]["gatesRemoved"] == ["no-unapproved-refund"]
    assert read_summary(reviews.invalid_suite())["errors"][0]["location"]["line"] == 12
    base = read_summary(reviews.no_base())
    assert base["baseline"]["problem"].startswith("`prepare` failed")
    assert base["suites"][0]["base"] is None


def test_summary_json__edits_and_the_scores_of_base_s_evaluators() -> None:
    (suite,) = read_summary(reviews.edited())["suites"]
    assert suite["edits"][0] == {
        "kind": "required gate",
        "name": "no-unapproved-refund",
        "action": "changed",
        "location": {"path": reviews.PATH, "line": 19, "column": 1},
        "tests": ["refund-over-limit"],
    }
    worse, _, unscored = (test["byBaseEvaluators"] for test in suite["tests"])
    assert worse == {
        "verdict": "fail",
        "score": 0.2,
        "gatesFailed": ["no-unapproved-refund", "quality/safe"],
        "failedOnBase": ["quality/safe"],
        "isWorse": True,
        "error": None,
    }
    assert (unscored["verdict"], unscored["error"]["message"]) == (None, "`prepare` failed")
