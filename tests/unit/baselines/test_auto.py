"""The ladder of sources: who is asked for what, and what is told of those that gave nothing."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentevals_action.baselines.auto import AutoBaseline
from agentevals_action.baselines.base import NoBaseline
from agentevals_action.model.baseline import BaselineInfo, BaselineOrigin, BaseRun, IncompleteSource
from agentevals_action.model.result import SuiteRun
from agentevals_action.model.review import Selection
from tests.support import results
from tests.support.base_tree import select

INFO = BaselineInfo("auto", wanted=True, commit="b" * 40, commit_time="2026-01-01T00:00:00Z")


@dataclass
class Source:
    """Gives what it has, and remembers what it was asked for."""

    name: str
    runs: Mapping[str, SuiteRun] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    asked: list[list[str]] = field(default_factory=list)
    reruns: bool = False

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        wanted = [selection.path for selection in selections]
        self.asked.append(wanted)
        runs = {path: run for path, run in self.runs.items() if path in wanted}
        origins = {path: BaselineOrigin(self.name, distance=2) for path in runs}
        return BaseRun(
            replace(INFO, source=self.name, problem=self.problem),
            runs,
            self.missing,
            self.problems,
            origins,
        )


def passing(path: str) -> SuiteRun:
    return results.run(results.result(path=path), path=path)


def errors(path: str) -> SuiteRun:
    return results.run(results.result(verdict=None, path=path), path=path)


def climbed(*sources: Source, paths: Sequence[str] = ("a", "b", "c")) -> BaseRun:
    ladder = AutoBaseline(INFO, [(source.name, source) for source in sources])
    return asyncio.run(ladder.results(select(*paths)))


def test_auto__later_sources_are_asked_for_the_rest_alone() -> None:
    branch = Source(
        "branch", {"a": passing("a")}, problems={"b": "x"}, missing={"c": "the suite is new"}
    )
    rerun, file = Source("rerun", {"b": passing("b")}), Source("file", {"a": passing("a")})
    run = climbed(branch, rerun, file)
    assert (branch.asked, rerun.asked, file.asked) == ([["a", "b", "c"]], [["b"]], [])
    assert {path: where.source for path, where in run.origins.items()} == {
        "a": "branch",
        "b": "rerun",
    }
    assert run.origins["a"].distance == 2
    assert (run.missing, run.problems) == ({"c": "the suite is new"}, {})
    assert run.info == replace(INFO, incomplete=(IncompleteSource("branch", "x"),))


def test_auto__one_source_for_all_is_named() -> None:
    run = climbed(
        Source("branch", problem="nothing is stored"),
        Source("rerun", {path: passing(path) for path in "abc"}),
    )
    assert (run.info.source, run.info.problem) == ("rerun", "")
    assert run.info.incomplete == (IncompleteSource("branch", "nothing is stored"),)
    assert set(run.suites) == {"a", "b", "c"}


def test_auto__why_a_source_did_not_give_each_suite() -> None:
    run = climbed(
        Source("branch", problems={"a": "one", "b": "two", "c": "three", "d": "four"}),
        Source("rerun", problem="p"),
        paths=("a", "b", "c", "d"),
    )
    assert run.info.incomplete == (
        IncompleteSource("branch", "`a`: one; `b`: two; `c`: three; and 1 more suite"),
        IncompleteSource("rerun", "p"),
    )


def test_auto__the_problem_of_the_rerun_stands() -> None:
    """The file comes after it, but what is wrong is that base could not be run."""
    run = climbed(
        Source("branch", problem="x"),
        Source("rerun", problem="`prepare` failed"),
        Source("file", problem="no file"),
    )
    assert (run.info.wanted, run.info.problem, run.suites) == (True, "`prepare` failed", {})
    assert [rung.source for rung in run.info.incomplete] == ["branch", "rerun", "file"]


def test_auto__the_file_stands_in_for_a_rerun_that_failed() -> None:
    run = climbed(
        Source("rerun", problem="`prepare` failed"),
        Source("file", {"a": passing("a")}),
        paths=("a", "b"),
    )
    assert (run.info.source, run.info.problem) == ("file", "")
    assert run.problems == {"b": "`prepare` failed"}


def test_auto__a_rerun_of_errors_gives_way_to_a_file_that_knows() -> None:
    run = climbed(
        Source("rerun", {"a": errors("a"), "b": errors("b")}),
        Source("file", {"a": passing("a")}),
        paths=("a", "b"),
    )
    assert run.suites == {"a": passing("a"), "b": errors("b")}
    assert {path: where.source for path, where in run.origins.items()} == {
        "a": "file",
        "b": "rerun",
    }
    assert run.problems == {}
    assert IncompleteSource("rerun", "all its tests ended in errors") in run.info.incomplete


def test_auto__new_suites_are_no_part_of_a_problem() -> None:
    run = climbed(
        Source("rerun", problem="`prepare` failed", missing={"a": "the suite is new"}),
        paths=("a", "b"),
    )
    assert (run.missing, run.problems, run.info.problem) == (
        {"a": "the suite is new"},
        {"b": "`prepare` failed"},
        "",
    )


def test_auto__without_any_source_the_base_could_not_be_had() -> None:
    assert climbed().info.problem == "there is no source of results"


def test_auto__a_source_that_says_nothing() -> None:
    run = asyncio.run(
        AutoBaseline(INFO, [("branch", NoBaseline(replace(INFO, reason="no code host")))]).results(
            select("a")
        )
    )
    assert (run.info.problem, run.info.incomplete) == (
        "no code host",
        (IncompleteSource("branch", "no code host"),),
    )
