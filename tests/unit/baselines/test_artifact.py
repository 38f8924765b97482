"""What earlier runs left as a base, with a host that knows what it is told."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.baselines.ancestry import Ancestry
from agentevals_action.baselines.artifact import ArtifactBaseline
from agentevals_action.baselines.base import EarlierRun, Lineage, RunArchive
from agentevals_action.errors import HostError
from agentevals_action.model.baseline import BaselineOrigin, BaseRun
from agentevals_action.model.suite import Suite
from tests.support import base_tree
from tests.support.github_history import zipped

NEAR, FAR, ALIEN = "1" * 40, "2" * 40, "3" * 40
LINE = Lineage({base_tree.BASE: 0, NEAR: 1, FAR: 5})


@dataclass
class Host:
    """Runs by commit, newest first, with the archives of each."""

    left: dict[str, Sequence[RunArchive]]
    refusal: str = ""
    opened: list[str] = field(default_factory=list)

    def runs(self, branch: str) -> Sequence[EarlierRun]:
        if self.refusal:
            raise HostError(self.refusal)
        return [EarlierRun(number, commit) for number, commit in enumerate(self.left, 100)]

    def archives(self, run: EarlierRun) -> Iterator[RunArchive]:
        self.opened.append(run.commit)
        yield from self.left[run.commit]


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return base_tree.greeter(tmp_path)


def report(suite: Suite, commit: str, **changes: dict[str, Any]) -> RunArchive:
    rows = base_tree.jsonl(base_tree.results_of(suite, changes))
    return RunArchive(
        "agentevals-report",
        zipped({"results.jsonl": rows, "summary.json": json.dumps({"headSha": commit})}),
    )


def given(
    suite: Suite, host: Host, lineage: Lineage = LINE, touched: str = "", branch: str = "main"
) -> BaseRun:
    def changed_since(ancestor: str, path: str) -> str:
        assert path == suite.path
        return f"touched since {ancestor[:1]}" if ancestor == touched else ""

    store = ArtifactBaseline(
        base_tree.tree(suite),
        base_tree.FRESH,
        host,
        branch,
        Ancestry(base_tree.BASE, [base_tree.KnownHistory(lineage)]),
        changed_since,
    )
    return asyncio.run(store.results(base_tree.select()))


def problem(suite: Suite, host: Host, lineage: Lineage = LINE, **more: str) -> str:
    run = given(suite, host, lineage, **more)
    assert (run.suites, run.info.wanted, run.info.problem) == ({}, True, "")
    return run.problems[suite.path]


def test_artifact__of_the_nearest_commit(suite: Suite) -> None:
    host = Host(
        {
            FAR: [report(suite, FAR)],
            ALIEN: [],
            NEAR: [report(suite, NEAR, short={"verdict": "fail"})],
        }
    )
    run = given(suite, host)
    assert [one.verdict for one in run.suites[suite.path].results] == ["pass", "fail"]
    assert run.origins == {
        suite.path: BaselineOrigin("artifact", NEAR, 1, "2026-01-01T00:00:00Z", 1, stale=False)
    }
    assert (host.opened, run.problems, run.info.source) == ([NEAR], {}, "artifact")


def test_artifact__of_the_base_itself_needs_no_look_at_changes(suite: Suite) -> None:
    run = given(
        suite, Host({base_tree.BASE: [report(suite, base_tree.BASE)]}), touched=base_tree.BASE
    )
    assert run.origins[suite.path].distance == 0


def test_artifact__a_commit_since_which_the_suite_was_touched_is_not_opened(suite: Suite) -> None:
    host = Host({NEAR: [report(suite, NEAR)]})
    assert problem(suite, host, touched=NEAR) == "touched since 1"
    assert host.opened == []


def test_artifact__goes_on_to_an_older_run(suite: Suite) -> None:
    host = Host(
        {NEAR: [RunArchive("agentevals-report", problem="has expired")], FAR: [report(suite, FAR)]}
    )
    run = given(suite, host)
    assert (run.origins[suite.path].distance, run.problems) == (5, {})


@pytest.mark.parametrize(
    ("archives", "words"),
    [
        ([], "it has no artifact"),
        (
            [RunArchive("agentevals-report", problem="has expired")],
            "the artifact `agentevals-report` has expired",
        ),
        ([RunArchive("x", b"")], "the artifact `x`: it is not a valid archive (BadZipFile)"),
        ([RunArchive("x", zipped({"a": "b"}))], "the artifact `x`: it contains no `results.jsonl`"),
    ],
)
def test_artifact__says_why_a_run_gave_nothing(
    suite: Suite, archives: list[RunArchive], words: str
) -> None:
    assert problem(suite, Host({NEAR: archives})) == f"the run 100 on 111111111111: {words}"


def test_artifact__results_of_another_commit_than_the_runs(suite: Suite) -> None:
    words = problem(suite, Host({NEAR: [report(suite, ALIEN)]}))
    assert (
        words
        == "the run 100 on 111111111111: the artifact `agentevals-report`: its results are of 333333333333"
    )


def test_artifact__with_other_digests(suite: Suite) -> None:
    other = replace(base_tree.fingerprints(suite)["short"], agent="0")
    words = problem(suite, Host({NEAR: [report(suite, NEAR, short={"print": other})]}))
    assert (
        words
        == "the run 100 on 111111111111: the test `short` was run with another agent than the base has"
    )


def test_artifact__no_run_that_could_be_meant(suite: Suite) -> None:
    assert problem(suite, Host({})) == "no successful run of this workflow on `main` exists"
    assert (
        problem(suite, Host({}), branch="")
        == "no successful run of this workflow on the default branch exists"
    )
    far = (
        "no successful run of this workflow on `main` is of the base or a commit shortly before it"
    )
    assert problem(suite, Host({ALIEN: []})) == far
    cut = Lineage({base_tree.BASE: 0}, "the clone is cut")
    assert problem(suite, Host({NEAR: []}), cut) == f"{far} (the clone is cut)"


def test_artifact__a_refusal_of_the_host(suite: Suite) -> None:
    assert (
        problem(suite, Host({}, refusal="the token lacks `actions: read`"))
        == "the token lacks `actions: read`"
    )


def test_artifact__a_few_runs_are_opened_at_most(suite: Suite) -> None:
    commits = [f"{number:040x}" for number in range(10)]
    host = Host({commit: [] for commit in commits})
    problem(suite, host, Lineage({commit: number for number, commit in enumerate(commits, 1)}))
    assert len(host.opened) == 4
