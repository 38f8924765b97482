"""The shared code of the baselines: the suites that base has, and the age of results."""

from dataclasses import replace
from pathlib import Path

import pytest

from agentevals_action.baselines.base import Freshness, origin_of, parse_time, split_selections
from agentevals_action.model.review import Selection
from tests.support import base_tree, results, suites


def test_split_selections__new_broken_and_renamed_suites(tmp_path: Path) -> None:
    whole = base_tree.greeter(tmp_path)
    broken = suites.load(suites.write(tmp_path, {"bad/EVAL.yaml": "tests: 3\n"}), "bad/EVAL.yaml")
    there = {suite.path: suite for suite in (whole, broken)}
    renamed = Selection("moved/EVAL.yaml", ("renamed",), base_path=whole.path)
    wanted, missing = split_selections(
        there, (*base_tree.select("new/EVAL.yaml", "bad/EVAL.yaml"), renamed)
    )
    assert wanted == {"moved/EVAL.yaml": whole}
    assert missing["new/EVAL.yaml"] == "the suite is new"
    assert missing["bad/EVAL.yaml"].startswith("the suite is broken on base (bad/EVAL.yaml:1")


@pytest.mark.parametrize(
    ("time", "days", "stale"),
    [
        ("2026-01-01T00:00:00Z", 8.0, True),
        ("2026-01-01T00:00:00Z", 9.0, False),
        ("2026-01-01T00:00:00+00:00", 0.0, True),
        ("2026-01-01T00:00:00", 8.0, True),
        ("2026-02-01T00:00:00Z", 1.0, False),
        (None, 0.0, False),
        ("yesterday", 0.0, False),
    ],
)
def test_freshness__by_age_in_days(time: str | None, days: float, stale: bool) -> None:
    assert Freshness(base_tree.NOW, days).is_stale(time) is stale


def test_origin__latest_time_and_fewest_samples() -> None:
    one = replace(results.result("a"), timestamp="2026-01-01T23:00:00-02:00")
    other = replace(results.result("b"), timestamp="2026-01-01T23:30:00Z", samples=one.samples * 3)
    origin = origin_of("file", results.run(one, other), "c" * 40)
    assert (origin.source, origin.commit, origin.time, origin.samples) == (
        "file",
        "c" * 40,
        "2026-01-01T23:00:00-02:00",
        1,
    )
    assert parse_time("no time") is None
