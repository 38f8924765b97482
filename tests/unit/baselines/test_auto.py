"""All sources in order: each is asked for the suites that are still open."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentevals_action.baselines.auto import AutoBaseline
from agentevals_action.model.baseline import BaselineInfo, BaselineOrigin, BaseRun, IncompleteSource
from agentevals_action.model.result import SuiteRun
from agentevals_action.model.review import Selection
from tests.support import results
from tests.support.base_tree import select

INFO = BaselineInfo("auto", wanted=True, commit="b" * 40, commit_time="2026-01-01T00:00:00Z")


@dataclass
class Source:
    """Has some runs, and records for which suites it was asked."""

    name: str
    paths: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    asked: list[str] = field(default_factory=list)
    reruns: bool = False

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        wanted = "".join(selection.path for selection in selections)
        self.asked.append(wanted)
        runs = {path: passing(path) for path in self.paths if path in wanted}
        origins = {path: BaselineOrigin(self.name) for path in runs}
        info = replace(INFO, source=self.name, problem=self.problem)
        return BaseRun(info, runs, self.missing, self.problems, origins)


def passing(path: str) -> SuiteRun:
    return results.run(results.result(path=path), path=path)


def found(*sources: Source, paths: str = "abc") -> BaseRun:
    auto = AutoBaseline(INFO, [(source.name, source) for source in sources])
    return asyncio.run(auto.results(select(*paths)))


def test_auto__later_sources_are_asked_for_the_rest_alone() -> None:
    branch = Source("branch", "a", problems={"b": "x"}, missing={"c": "the suite is new"})
    file, rerun = Source("file", "b"), Source("rerun", "abc")
    run = found(branch, file, rerun)
    assert (branch.asked, file.asked, rerun.asked) == (["abc"], ["b"], [])
    assert {path: origin.source for path, origin in run.origins.items()} == {
        "a": "branch",
        "b": "file",
    }
    assert (run.missing, run.problems) == ({"c": "the suite is new"}, {})
    assert run.info == replace(INFO, incomplete=(IncompleteSource("branch", "x"),))


def test_auto__a_source_that_has_all_is_named() -> None:
    run = found(Source("branch", problem="nothing is stored"), Source("rerun", "abc"))
    assert (run.info.source, run.info.problem) == ("rerun", "")
    assert run.info.incomplete == (IncompleteSource("branch", "nothing is stored"),)


def test_auto__the_reasons_of_several_suites_are_bounded() -> None:
    run = found(
        Source("branch", problems={"a": "one", "b": "two", "c": "three", "d": "four"}),
        Source("rerun", problem="p"),
        paths="abcd",
    )
    assert run.info.incomplete == (
        IncompleteSource("branch", "`a`: one; `b`: two; `c`: three; and 1 more suite"),
        IncompleteSource("rerun", "p"),
    )
    assert (run.info.wanted, run.info.problem, run.suites) == (True, "p", {})


def test_auto__new_suites_are_no_part_of_a_problem() -> None:
    run = found(Source("rerun", problem="p", missing={"a": "the suite is new"}), paths="ab")
    assert (run.missing, run.problems, run.info.problem) == (
        {"a": "the suite is new"},
        {"b": "p"},
        "",
    )
