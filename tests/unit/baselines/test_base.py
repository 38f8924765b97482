"""The sources of base's results in their order, what base runs itself, and the age of results."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from agentevals_action.baselines.base import (
    FoundSuites,
    Unavailable,
    find_stored,
    is_stale,
    origin_of,
    with_rerun,
)
from agentevals_action.model.baseline import (
    BaselineInfo,
    BaselineOrigin,
    BaseSuite,
    IncompleteSource,
)
from agentevals_action.model.run import Selection
from agentevals_action.model.suite import Suite
from tests.support import base_tree, results, suites

INFO = BaselineInfo("auto", wanted=True, commit="b" * 40, commit_time="2026-01-01T00:00:00Z")
ROW = results.result()


@dataclass
class Source:
    """Has some suites, and records for which it was asked."""

    name: str
    paths: str = ""
    asked: str = ""
    reasons: Sequence[str] = field(default_factory=list)

    async def find(self, suite: Suite) -> BaseSuite:
        self.asked += suite.path
        if suite.path not in self.paths:
            raise Unavailable(f"no {suite.path}" if not self.reasons else self.reasons[0])
        return BaseSuite((ROW,), BaselineOrigin(self.name))


@pytest.fixture
def whole(tmp_path: Path) -> Suite:
    return base_tree.greeter(tmp_path)


def found(
    whole: Suite, *sources: Source, paths: str = "abc", info: BaselineInfo = INFO
) -> FoundSuites:
    known = {path: whole.model_copy(update={"path": path}) for path in paths}
    return asyncio.run(find_stored(info, sources, known, base_tree.select(*paths, "new")))


def test_find__later_sources_are_asked_for_the_rest_alone_and_base_runs_what_is_left(
    whole: Suite,
) -> None:
    branch, file = Source("branch", "a"), Source("file", "b")
    stored = found(whole, branch, file)
    assert (branch.asked, file.asked, [*stored.left]) == ("abc", "bc", ["c"])
    base = with_rerun(stored, {"c": [ROW]})
    sources = {path: suite.origin.source for path, suite in base.suites.items()}
    assert sources == {"a": "branch", "b": "file", "c": "rerun"}
    assert (base.notes, base.problems) == ({"new": "the suite is new"}, {})
    tried = (IncompleteSource("branch", "`b`: no b; `c`: no c"), IncompleteSource("file", "no c"))
    assert base.info == replace(INFO, incomplete=tried)


def test_find__a_source_that_has_all_is_named(whole: Suite) -> None:
    base = with_rerun(found(whole, Source("branch")), {path: [ROW] for path in "abc"})
    assert (base.info.source, base.problems) == ("rerun", {})


def test_find__the_reasons_of_several_suites_are_bounded(whole: Suite) -> None:
    (tried,) = found(whole, Source("branch"), paths="abcd").results.info.incomplete
    assert tried.problem == "`a`: no a; `b`: no b; `c`: no c; and 1 more suite"


def test_rerun__a_base_that_cannot_run_is_a_problem_of_what_is_left(whole: Suite) -> None:
    base = with_rerun(found(whole, Source("branch", "a")), {}, "no npm")
    assert (base.problems, base.info.problem) == ({"b": "no npm", "c": "no npm"}, "")
    stored = replace(found(whole), results=replace(found(whole).results, notes={}))
    assert with_rerun(stored, {}, "no npm").info.problem == "no npm"


def test_find__new_broken_and_renamed_suites(tmp_path: Path, whole: Suite) -> None:
    broken = suites.load(suites.write(tmp_path, {"bad/EVAL.yaml": "tests: 3\n"}), "bad/EVAL.yaml")
    there = {suite.path: suite for suite in (whole, broken)}
    renamed = Selection("moved/EVAL.yaml", ("renamed",), base_path=whole.path)
    selected = (*base_tree.select("new/EVAL.yaml", "bad/EVAL.yaml"), renamed)
    stored = asyncio.run(find_stored(INFO, (), there, selected))
    assert stored.left == {"moved/EVAL.yaml": whole}
    notes = stored.results.notes
    assert notes["new/EVAL.yaml"] == "the suite is new"
    assert notes["bad/EVAL.yaml"].startswith("the suite is broken on base (bad/EVAL.yaml:1")


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
def test_is_stale__by_age_in_days(time: str | None, days: float, stale: bool) -> None:
    assert is_stale(time, base_tree.NOW, days) is stale


def test_origin__latest_time_and_fewest_samples() -> None:
    early = replace(results.result("a"), timestamp="2026-01-01T23:00:00-02:00")
    late = replace(early, timestamp="2026-01-01T23:30:00Z", samples=early.samples * 3)
    origin = origin_of("file", [early, late], "c" * 40)
    assert origin == BaselineOrigin("file", "c" * 40, time=early.timestamp, samples=1)
