"""What earlier runs of the default branch stored, as a base."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.baselines import history
from agentevals_action.baselines.ancestry import Ancestry
from agentevals_action.baselines.base import Lineage
from agentevals_action.baselines.branch import BranchBaseline
from agentevals_action.errors import HostError
from agentevals_action.model.baseline import BaselineOrigin, BaseRun
from agentevals_action.model.history import Remembered, SuiteHistory
from agentevals_action.model.result import (
    ErrorInfo,
    SampleResult,
    SuiteRun,
    TestResult,
    TraceSummary,
)
from agentevals_action.model.suite import BrokenSuite, Suite
from tests.support import base_tree, results, suites

BASE, NEAR, FAR, FARTHER, ALIEN = base_tree.BASE, "1" * 40, "2" * 40, "3" * 40, "4" * 40
LINE = Lineage({BASE: 0, NEAR: 1, FAR: 5, FARTHER: 9})
DAY = {FARTHER: 5, FAR: 6, NEAR: 7, ALIEN: 7, BASE: 8}


@dataclass
class Memory:
    """Histories of suites; `asked` are the paths that were asked for."""

    kept: Mapping[str, SuiteHistory] = field(default_factory=dict)
    damaged: Mapping[str, str] = field(default_factory=dict)
    refusal: str = ""
    asked: list[str] = field(default_factory=list)

    def read(self, suites: Collection[str]) -> Remembered:
        self.asked.extend(suites)
        if self.refusal:
            raise HostError(self.refusal)
        return Remembered(self.kept, self.damaged)


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return base_tree.greeter(tmp_path)


def run(
    suite: Suite, changes: Mapping[str, Mapping[str, Any]] | None = None, without: str = ""
) -> SuiteRun:
    found = [one for one in base_tree.results_of(suite, changes) if one.eval_id != without]
    return results.run(*found, path=suite.path)


def remembered(suite: Suite, runs: Mapping[str, SuiteRun]) -> Memory:
    kept = SuiteHistory(suite.path, suite.name, {})
    for commit, one in runs.items():
        kept = history.merged(
            kept, history.of_run(one, commit, f"2026-01-{DAY[commit]:02}T00:00:00Z")[0]
        )
    return Memory({suite.path: kept})


def given(
    suite: Suite,
    memory: Memory,
    touched: Collection[str] = (),
    lineage: Lineage = LINE,
    asked: list[str] | None = None,
) -> BaseRun:
    def changed_since(ancestor: str, path: str) -> str:
        assert path == suite.path
        if asked is not None:
            asked.append(ancestor)
        return f"touched since {ancestor[:1]}" if ancestor in touched else ""

    store = BranchBaseline(
        base_tree.tree(suite),
        base_tree.FRESH,
        memory,
        "agentevals-data",
        Ancestry(base_tree.BASE, [base_tree.KnownHistory(lineage)]),
        changed_since,
    )
    return asyncio.run(store.results(base_tree.select()))


def problem(suite: Suite, memory: Memory, **more: Any) -> str:
    found = given(suite, memory, **more)
    assert (found.suites, found.missing, found.info.wanted, found.info.problem) == (
        {},
        {},
        True,
        "",
    )
    return found.problems[suite.path]


def by_id(found: BaseRun) -> dict[str, TestResult]:
    return {one.eval_id: one for one in found.suites[base_tree.PATH].results}


def test_base__has_its_own_results_and_those_before_as_history(suite: Suite) -> None:
    failing = run(suite, {"short": {"verdict": "fail"}})
    memory = remembered(
        suite, {FARTHER: run(suite), FAR: failing, NEAR: run(suite), BASE: run(suite)}
    )
    found = given(suite, memory)
    assert [one.verdict for one in by_id(found)["short"].samples] == [
        "pass",
        "fail",
        "pass",
        "pass",
    ]
    assert found.origins == {
        suite.path: BaselineOrigin("branch", BASE, 0, "2026-01-08T00:00:00.000Z", 4, stale=False)
    }
    assert (found.info.source, found.problems, memory.asked) == ("branch", {}, [suite.path])


def test_base__result_is_that_of_all_samples_with_the_suites_own_places(suite: Suite) -> None:
    failing = run(suite, {"greets": {"verdict": "fail", "failed": ("by-name",)}})
    result = by_id(
        given(suite, remembered(suite, {FAR: failing, NEAR: failing, BASE: run(suite)}))
    )["greets"]
    assert (result.verdict, result.gates_failed, round(result.score or 0, 2)) == (
        "fail",
        ("by-name",),
        0.47,
    )
    assert ([gate.name for gate in result.gates], result.path, result.line, result.question) == (
        ["by-name"],
        suite.path,
        3,
        "Ada",
    )
    assert result.fingerprint == base_tree.fingerprints(suite)["greets"]


def test_base__only_the_latest_answer_is_there(suite: Suite) -> None:
    memory = remembered(
        suite,
        {
            NEAR: run(suite, {"short": {"answer": "old"}}),
            BASE: run(suite, {"short": {"answer": "new"}}),
        },
    )
    short = by_id(given(suite, memory))["short"]
    assert [one.output_messages for one in short.samples] == [
        (),
        ({"role": "assistant", "content": "new"},),
    ]
    assert short.candidate_answer == "new"


def test_base__an_answer_of_another_verdict_is_not_shown_as_its_own(suite: Suite) -> None:
    failing = run(suite, {"short": {"verdict": "fail"}})
    short = by_id(
        given(
            suite,
            remembered(
                suite, {FAR: run(suite), NEAR: run(suite), FARTHER: run(suite), BASE: failing}
            ),
        )
    )["short"]
    assert short.score == pytest.approx(0.8)
    assert (short.verdict, short.candidate_answer, bool(short.samples[-1].output_messages)) == (
        "pass",
        "",
        True,
    )


def test_base__samples_have_their_figures(suite: Suite) -> None:
    told = SampleResult(
        score=1.0,
        verdict="pass",
        trace_summary=TraceSummary(cost_usd=0.5, duration_ms=7.0, input_tokens=3),
    )
    changed = [replace(one, samples=(told,)) for one in run(suite).results]
    short = by_id(given(suite, remembered(suite, {BASE: results.run(*changed, path=suite.path)})))[
        "short"
    ]
    assert short.samples[0].trace_summary == TraceSummary(cost_usd=0.5, duration_ms=7.0)


def test_ancestor__the_nearest_that_left_the_suite_alone(suite: Suite) -> None:
    memory = remembered(suite, {FARTHER: run(suite), FAR: run(suite), NEAR: run(suite)})
    found = given(suite, memory, touched=[NEAR])
    assert found.origins == {
        suite.path: BaselineOrigin("branch", FAR, 5, "2026-01-06T00:00:00.000Z", 2, stale=False)
    }


def test_history__goes_back_to_the_first_commit_since_which_the_suite_was_touched(
    suite: Suite,
) -> None:
    memory = remembered(
        suite, {FARTHER: run(suite), FAR: run(suite), NEAR: run(suite), BASE: run(suite)}
    )
    asked: list[str] = []
    found = given(suite, memory, touched=[FAR], asked=asked)
    assert (found.origins[suite.path].samples, asked) == (2, [NEAR, FAR])


def test_history__has_no_samples_of_commits_that_are_no_ancestors(suite: Suite) -> None:
    memory = remembered(
        suite, {ALIEN: run(suite, {"short": {"verdict": "fail"}}), BASE: run(suite)}
    )
    assert [one.verdict for one in by_id(given(suite, memory))["short"].samples] == ["pass"]
    words = problem(suite, remembered(suite, {ALIEN: run(suite)}))
    assert words == "`agentevals-data` has no results of the base or a commit shortly before it"
    cut = Lineage({BASE: 0}, "the clone does not contain the complete history")
    assert (
        problem(suite, remembered(suite, {NEAR: run(suite)}), lineage=cut)
        == f"{words} (the clone does not contain the complete history)"
    )


def test_old_results__are_stale_and_used(suite: Suite) -> None:
    kept = history.of_run(run(suite), BASE, "2025-12-01T00:00:00Z")[0]
    assert given(suite, Memory({suite.path: kept})).origins[suite.path].stale


def test_missing_test__takes_an_older_commit_or_fails(suite: Suite) -> None:
    half = run(suite, without="short")
    found = given(suite, remembered(suite, {FAR: run(suite), BASE: half}))
    assert found.origins[suite.path].commit == FAR
    words = problem(suite, remembered(suite, {NEAR: half, BASE: half}))
    assert (
        words
        == f"the results on `agentevals-data` of {BASE[:12]}: the test `short` of 2 is not in it"
    )


def test_test_that_ended_in_an_error__is_missing(suite: Suite) -> None:
    error = SampleResult(error=ErrorInfo(kind="target", message="down"))
    broken = [
        replace(one, samples=(error,)) if one.eval_id == "short" else one
        for one in run(suite).results
    ]
    words = problem(suite, remembered(suite, {BASE: results.run(*broken, path=suite.path)}))
    assert words.endswith("the test `short` of 2 is not in it")


@pytest.mark.parametrize("part", ["question", "grading", "agent"])
def test_another_fingerprint__fails_and_says_which(suite: Suite, part: str) -> None:
    other = replace(base_tree.fingerprints(suite)["short"], **{part: "0" * 64})
    words = problem(suite, remembered(suite, {BASE: run(suite, {"short": {"print": other}})}))
    assert (
        words
        == f"the results on `agentevals-data` of {BASE[:12]}: the test `short` was run with another {part} than the base has"
    )


def test_another_fingerprint__of_the_same_commit_does_not_hide_the_right_one(suite: Suite) -> None:
    other = replace(base_tree.fingerprints(suite)["short"], agent="0" * 64)
    (kept,) = remembered(suite, {BASE: run(suite)}).kept.values()
    later = history.of_run(run(suite, {"short": {"print": other}}), BASE, "2026-01-09T00:00:00Z")[0]
    assert (
        given(suite, Memory({suite.path: history.merged(kept, later)})).origins[suite.path].commit
        == BASE
    )


def test_touched_commits__are_not_asked_for_without_end(suite: Suite) -> None:
    line = Lineage({BASE: 0, **{f"{number:040x}": number for number in range(1, 40)}})
    kept = SuiteHistory(suite.path, suite.name, {})
    for commit in list(line.distances)[1:]:
        kept = history.merged(
            kept,
            history.of_run(run(suite), commit, f"2026-01-01T00:00:{line.distances[commit]:02}Z")[0],
        )
    asked: list[str] = []
    words = problem(
        suite, Memory({suite.path: kept}), touched=list(line.distances), lineage=line, asked=asked
    )
    assert words == f"the results on `agentevals-data` of {asked[0][:12]}: touched since 0"
    assert asked == [f"{number:040x}" for number in (1, 2, 3)]


def test_damage_and_nothing__are_told_apart(suite: Suite) -> None:
    assert (
        problem(suite, Memory(damaged={suite.path: "it is no JSON"}))
        == "its file on `agentevals-data` is damaged: it is no JSON"
    )
    assert problem(suite, Memory()) == "`agentevals-data` has no results of it"
    assert problem(suite, Memory(refusal="no answer")) == "no answer"


def test_suites_that_base_has_not__are_rightly_missing(tmp_path: Path) -> None:
    memory = Memory(refusal="never asked")
    suites.write(tmp_path, {**base_tree.FILES, base_tree.PATH: "name: x\n"})
    broken = base_tree.at(tmp_path)
    assert isinstance(broken.suites[base_tree.PATH], BrokenSuite)
    for tree, words in (
        (base_tree.tree(), "the suite is new"),
        (broken, "the suite is broken on base"),
    ):
        store = BranchBaseline(
            tree,
            base_tree.FRESH,
            memory,
            "agentevals-data",
            Ancestry(base_tree.BASE, [base_tree.KnownHistory(LINE)]),
            lambda *_: "",
        )
        found = asyncio.run(store.results(base_tree.select()))
        assert found.missing[base_tree.PATH].startswith(words)
        assert (found.problems, memory.asked) == ({}, [])
