"""The badge shows what the run knows: an error is not passed, and a rounded rate is not all."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from agentevals_action.baselines.badge import badge
from agentevals_action.model.result import Verdict
from agentevals_action.model.review import Outcome
from tests.support.results import result

TIME = datetime(2026, 11, 23, 23, 59, tzinfo=UTC)


def shown(counts: Mapping[str, int], outcome: Outcome = Outcome.PASSED) -> Any:
    verdicts: dict[str, Verdict | None] = {"passed": "pass", "failed": "fail", "errors": None}
    results = [
        result(verdict=verdicts[name]) for name, number in counts.items() for _ in range(number)
    ]
    return json.loads(badge(results, outcome, TIME))


def test_badge__is_what_shields_reads() -> None:
    assert shown({"passed": 49, "failed": 1}) == {
        "schemaVersion": 1,
        "label": "evals",
        "message": "98% · 2026-11-23",
        "color": "green",
    }


@pytest.mark.parametrize(
    ("counts", "message", "color"),
    [
        ({"passed": 3}, "100% · 2026-11-23", "brightgreen"),
        ({"passed": 2499, "failed": 1}, "99.9% · 2026-11-23", "green"),
        ({"passed": 3, "failed": 1}, "75% · 2026-11-23", "yellow"),
        ({"failed": 2}, "0% · 2026-11-23", "red"),
        ({"passed": 1, "errors": 1}, "100% · 1 error · 2026-11-23", "red"),
        ({"errors": 2}, "unknown", "lightgrey"),
        ({}, "unknown", "lightgrey"),
    ],
)
def test_badge__rate_of_scored_tests_and_colour_of_all(
    counts: Mapping[str, int], message: str, color: str
) -> None:
    made = shown(counts)
    assert (made["message"], made["color"]) == (message, color)


@pytest.mark.parametrize(
    ("outcome", "color"),
    [(Outcome.INCONCLUSIVE, "yellow"), (Outcome.FAILED, "red"), (Outcome.INVALID, "red")],
)
def test_badge__is_not_green_unless_the_run_passed(outcome: Outcome, color: str) -> None:
    assert shown({"passed": 3}, outcome)["color"] == color
