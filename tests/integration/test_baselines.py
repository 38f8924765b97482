"""The sources of base results over real HTTP and real git: history, artifacts, the file, and the
ladder over them."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.baselines.ancestry import Ancestry, GitHistory
from agentevals_action.baselines.artifact import ArtifactBaseline
from agentevals_action.baselines.auto import AutoBaseline
from agentevals_action.baselines.base import BaseTree, EarlierRun
from agentevals_action.baselines.branch import BranchBaseline
from agentevals_action.baselines.file import FileBaseline
from agentevals_action.baselines.rerun import RerunBaseline
from agentevals_action.errors import HostError, InvalidInput
from agentevals_action.github.client.api import GitHubApi, RunContext
from agentevals_action.github.data_branch import DataBranch
from agentevals_action.github.history import GitHubHistory
from agentevals_action.github.host import GitHubHost
from agentevals_action.model.baseline import BaseRun
from agentevals_action.model.changed_file import ChangedFile
from agentevals_action.model.result import SuiteRun
from agentevals_action.model.suite import Suite
from agentevals_action.review.change.changed_files import describe_change
from agentevals_action.review.change.selection import Change
from agentevals_action.review.change.unchanged_since import changed_since
from agentevals_action.settings import Settings
from agentevals_action.suites import checkout as wiring
from agentevals_action.system.git import GitRepository
from tests.support import base_tree, command, results, suites
from tests.support.github_history import BlobServer, zipped
from tests.support.github_http import InjectedFailure
from tests.support.github_server import GitHubServer
from tests.support.repositories import Files, Repository

A, B, C = "a/EVAL.yaml", "b/EVAL.yaml", "c/EVAL.yaml"
FILES: Files = {
    ".agentv/targets.yaml": suites.TARGETS,
    A: base_tree.SUITE,
    B: base_tree.SUITE,
    C: base_tree.SUITE,
}


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with GitHubServer() as server, BlobServer() as blobs:
        server.history.blobs = blobs
        server.page_limit = 100
        yield server


@pytest.fixture
def origin(tmp_path: Path, server: GitHubServer) -> Repository:
    server.history.origin = made = Repository.create(tmp_path / "origin", FILES)
    return made


def target(server: GitHubServer, **changes: Any) -> RunContext:
    facts: dict[str, Any] = {
        "repository": "acme/agent",
        "head_sha": "0" * 40,
        "token": server.token,
        "api_url": server.url,
        "run_id": 900,
    }
    return RunContext(**facts | changes)


def past(server: GitHubServer, **changes: Any) -> GitHubHistory:
    server.history.add_run(
        900,
        "0" * 40,
        event="pull_request",
        status="in_progress",
        conclusion=None,
        head_branch="feature",
    )
    return GitHubHost(target(server, **changes), lambda _: None).history


def report(root: Path, commit: str, *paths: str) -> bytes:
    """The archive of a report folder with passing results of these suites, as they are in the
    working tree."""
    rows = [row for path in paths for row in base_tree.results_of(suites.load_valid(root, path))]
    return zipped(
        {
            "results.jsonl": base_tree.jsonl(rows),
            "summary.json": json.dumps({"headSha": commit}),
            "comment.md": "hello",
        }
    )


# What GitHub knows of the history


def test_lineage__over_all_pages_and_both_parents(origin: Repository, server: GitHubServer) -> None:
    server.page_limit = 20
    first = origin.head()
    origin.git("checkout", "--quiet", "-b", "feature")
    side = origin.commit("side", {"side": "1"})
    origin.git("checkout", "--quiet", "main")
    chain = [origin.commit(f"main {number}", {"file": str(number)}) for number in range(30)]
    origin.git("merge", "--quiet", "--no-ff", "--no-edit", "feature")
    found = past(server).lineage(origin.head()).distances
    assert (found[origin.head()], found[chain[-1]], found[side], found[first], found[chain[0]]) == (
        0,
        1,
        1,
        2,
        30,
    )
    assert len(found) == 33
    assert found == GitHistory(GitRepository(origin.path)).lineage(origin.head()).distances


def test_changes__as_git_tells_them(origin: Repository, server: GitHubServer) -> None:
    first = origin.head()
    last = origin.commit(
        "change",
        {
            A: None,
            "moved/EVAL.yaml": base_tree.SUITE.replace("Bob", "Rob"),
            "new": "1",
            B: "tests: []\n",
        },
    )
    found = past(server).changes(first, last)
    assert found == list(GitHistory(GitRepository(origin.path)).changes(first, last))
    assert ChangedFile("new", "added") in found


def test_changes__that_cannot_be_told(origin: Repository, server: GitHubServer) -> None:
    first = origin.head()
    many = origin.commit("many", {f"files/{number}": "1" for number in range(301)})
    told = past(server)
    assert (
        told.changes(first, many)
        == f"too much has changed since {first[:12]} for GitHub to list it (300 files or more)"
    )
    assert told.changes(many, first) == f"the base does not descend from {many[:12]}"
    assert Ancestry(many, (told, GitHistory(GitRepository(origin.path)))).changes(
        first
    ) != told.changes(first, many)


def test_history__without_the_permission_to_read_it(
    origin: Repository, server: GitHubServer
) -> None:
    server.permissions["contents"] = "none"
    with pytest.raises(
        HostError,
        match=r"ancestors could not be read: the token lacks `contents: read` .* Add `contents: read` to the",
    ):
        past(server).lineage(origin.head())
    with pytest.raises(
        HostError, match="the changes since could not be read: the token lacks `contents: read`"
    ):
        past(server).changes(origin.head(), origin.head())


# What earlier runs left


def test_runs__only_those_of_the_branch_itself(server: GitHubServer) -> None:
    history = server.history
    for number in (1, 2, 3):
        history.add_run(
            number, str(number) * 40, event=("push", "schedule", "workflow_dispatch")[number - 1]
        )
    history.add_run(
        4, "4" * 40, event="pull_request"
    )  # of a fork whose branch is called `main` as well
    history.add_run(5, "5" * 40, head_repository={"id": 2, "full_name": "stranger/agent"})
    history.add_run(6, "6" * 40, head_repository=None)
    history.add_run(7, "7" * 40, workflow_id=2)
    history.add_run(8, "8" * 40, conclusion="failure")
    history.add_run(9, "9" * 40, head_branch="other")
    assert [run.id for run in past(server).runs("main")] == [3, 2, 1]
    assert [run.id for run in past(server).runs()] == [3, 2, 1]
    assert [run.commit[0] for run in past(server).runs("other")] == ["9"]


def test_runs__without_the_permission_to_read_them(server: GitHubServer) -> None:
    told = past(server)
    server.permissions["actions"] = "none"
    with pytest.raises(
        HostError,
        match=r"earlier runs .* lacks `actions: read` .* Add `actions: read` to the `permissions:` of the job",
    ):
        told.runs("main")
    with pytest.raises(HostError, match="the number of this run is unknown"):
        past(server, run_id=0).runs("main")


def test_archives__are_fetched_elsewhere_and_without_the_token(server: GitHubServer) -> None:
    history = server.history
    history.add_run(1, "1" * 40)
    content = zipped({"a": "b"})
    history.add_artifact(1, b"old attempt")
    history.add_artifact(1, b"logs", name="aaa")
    history.add_artifact(1, content)
    history.add_artifact(1, b"more", name="my-agentevals")
    (run,) = past(server).runs("main")
    found = list(past(server).archives(run))
    assert [(one.name, one.content) for one in found] == [
        ("agentevals-report", content),
        ("agentevals-report", b"old attempt"),
        ("my-agentevals", b"more"),
    ]
    assert history.blobs is not None
    assert len(history.blobs.headers) == 3
    assert not any(
        "authorization" in headers or server.token in str(headers)
        for headers in history.blobs.headers
    )


def test_archives__that_are_not_fetched(server: GitHubServer) -> None:
    history = server.history
    history.add_run(1, "1" * 40)
    history.add_artifact(1, b"", expired=True)
    history.add_artifact(1, b"", size=65 * 1024 * 1024)
    (run,) = past(server).runs("main")
    assert [one.problem for one in past(server).archives(run)] == [
        "is larger than 64 MiB",
        "has expired",
    ]
    assert server.routes("zip") == []


def test_archives__that_are_larger_than_github_says(server: GitHubServer) -> None:
    server.history.add_run(1, "1" * 40)
    server.history.add_artifact(1, bytes(65 * 1024 * 1024), size=10)
    (run,) = past(server).runs("main")
    assert [one.problem for one in past(server).archives(run)] == ["is larger than 64 MiB"]


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "ftp://127.0.0.1/x", "/relative", "data:,x"]
)
def test_archives__an_address_that_is_none_of_the_web(server: GitHubServer, location: str) -> None:
    server.history.add_run(1, "1" * 40)
    server.history.add_artifact(1, b"x")
    server.history.location = location
    (run,) = past(server).runs("main")
    with pytest.raises(HostError, match="could not be fetched: GitHub did not respond correctly"):
        list(past(server).archives(run))


def test_archives__that_are_not_there_any_more(server: GitHubServer) -> None:
    server.history.add_run(1, "1" * 40)
    server.history.add_artifact(1, b"x")
    (run,) = past(server).runs("main")
    assert server.history.blobs is not None
    server.history.blobs.blobs.clear()
    with pytest.raises(HostError, match="the artifact `agentevals-report` could not be fetched"):
        list(past(server).archives(run))


def test_archives__a_server_error_is_met_with_patience(server: GitHubServer) -> None:
    server.history.add_run(1, "1" * 40)
    server.history.add_artifact(1, b"x")
    server.break_route(InjectedFailure("GET .*/zip", 502, times=2))
    (run,) = past(server).runs("main")
    assert [one.content for one in past(server).archives(run)] == [b"x"]


def test_runs_and_archives__that_do_not_exist_are_asked_for_once(server: GitHubServer) -> None:
    waits: list[float] = []
    history = GitHubHost(target(server), waits.append).history
    server.history.add_run(900, "0" * 40, event="pull_request", head_branch="feature")
    assert history.runs("main") == ()
    assert list(history.archives(EarlierRun(900, "0" * 40))) == []
    assert waits == []
    assert len(server.routes("/runs$")) == len(server.routes("/artifacts$")) == 1


# The ladder


@dataclass(frozen=True)
class World:
    """The base's tree in a working copy, and what may be asked about it."""

    root: Path
    tree: BaseTree
    source: GitHubHistory
    ancestry: Ancestry

    @cached_property
    def untouched(self) -> Callable[[str, str], str]:
        return changed_since(
            self.tree.suites,
            (),
            self.ancestry.changes,
            lambda files: describe_change(files, (self.root,)),
        )

    @property
    def artifact(self) -> ArtifactBaseline:
        return ArtifactBaseline(
            self.tree,
            base_tree.FRESH,
            self.source,
            "main",
            self.ancestry,
            self.untouched,
        )

    def branch(self, memory: DataBranch) -> BranchBaseline:
        lineage = self.ancestry
        return BranchBaseline(
            self.tree,
            base_tree.FRESH,
            memory,
            "agentevals-data",
            lineage,
            self.untouched,
        )

    def rerun(self, *failing: str, refusal: str = "") -> RerunBaseline:
        async def prepare(_: Path) -> None:
            if refusal:
                raise InvalidInput(refusal, "mend it")

        async def run(wanted: Sequence[Suite]) -> Sequence[SuiteRun]:
            changes = {"greets": {"verdict": None}, "short": {"verdict": None}}
            given = [
                (suite, base_tree.results_of(suite, changes if suite.path in failing else None))
                for suite in wanted
            ]
            return [results.run(*rows, path=suite.path) for suite, rows in given]

        return RerunBaseline(self.tree.info, self.root, prepare, run, self.tree.suites)

    @property
    def file(self) -> FileBaseline:
        path = self.root / "baseline.jsonl"
        content = path.read_bytes() if path.exists() else None
        return FileBaseline(self.tree, base_tree.FRESH, content, "baseline.jsonl")

    def climb(self, **rungs: Any) -> BaseRun:
        return asyncio.run(
            AutoBaseline(self.tree.info, tuple(rungs.items())).results(
                base_tree.select(A, B, C, "new/EVAL.yaml")
            )
        )


def world(origin: Repository, server: GitHubServer, *places: Any) -> World:
    source = past(server)
    ancestry = Ancestry(origin.head(), places or (source,))
    return World(
        origin.path, base_tree.at(origin.path, A, B, C, commit=origin.head()), source, ancestry
    )


def uploaded(origin: Repository, server: GitHubServer, number: int, *paths: str) -> str:
    """A run on the present commit, with its report."""
    server.history.add_run(number, origin.head())
    server.history.add_artifact(number, report(origin.path, origin.head(), *paths))
    return origin.head()


def test_ladder__each_suite_from_the_first_that_has_it(
    origin: Repository, server: GitHubServer
) -> None:
    old = uploaded(origin, server, 1, A, B, C)
    origin.commit(
        "touch b",
        {B: base_tree.SUITE.replace("greeter", "renamed").replace("Bob", "Rob"), "docs.md": "1"},
    )
    origin.commit("docs", {"docs.md": "2"})
    uploaded(origin, server, 2, "a/EVAL.yaml")
    here = world(origin, server)
    run = here.climb(artifact=here.artifact, rerun=here.rerun())
    told = {
        path: (where.source, where.commit, where.distance) for path, where in run.origins.items()
    }
    assert told == {
        A: ("artifact", origin.head(), 0),
        B: ("rerun", origin.head(), 0),
        C: ("artifact", old, 2),
    }
    assert run.missing == {"new/EVAL.yaml": "the suite is new"}
    (rung,) = run.info.incomplete
    # The nearest run is asked first, and what it lacks is the reason that is told.
    assert (rung.source, rung.problem) == (
        "artifact",
        f"the run 2 on {origin.head()[:12]}: there are no results of it",
    )
    assert server.routes("compare") == [f"GET /repos/acme/agent/compare/{old}...{origin.head()}"]


def test_ladder__over_all_its_rungs(origin: Repository, server: GitHubServer) -> None:
    """Each suite stands for a rung: `a` is stored of the base, `b` of an ancestor, `c` was
    uploaded, `d` has to be run, `e` cannot be."""
    origin.commit("more suites", {f"{name}/EVAL.yaml": base_tree.SUITE for name in "de"})
    paths = {name: f"{name}/EVAL.yaml" for name in "abcde"}
    server.permissions["contents"] = "write"
    memory = DataBranch(GitHubApi(target(server), lambda _: None), "agentevals-data")

    def store(time: str, *names: str) -> None:
        found = [
            results.run(
                *base_tree.results_of(suites.load_valid(origin.path, paths[name])), path=paths[name]
            )
            for name in names
        ]
        assert memory.store(found, origin.head(), time) == ()

    store("2026-01-01T00:00:00Z", "b", "d")
    uploaded(origin, server, 1, paths["c"])
    old = origin.head()
    origin.commit("touch d", {paths["d"]: base_tree.SUITE + "# of another kind\n", "docs.md": "1"})
    store("2026-01-02T00:00:00Z", "a")
    tree = base_tree.at(origin.path, *paths.values(), commit=origin.head())
    source = past(server)
    here = World(origin.path, tree, source, Ancestry(origin.head(), (source,)))
    ladder = AutoBaseline(
        tree.info,
        (
            ("branch", here.branch(memory)),
            ("artifact", here.artifact),
            ("rerun", here.rerun(paths["e"])),
            ("file", here.file),
        ),
    )
    run = asyncio.run(ladder.results(base_tree.select(*paths.values())))
    told = {
        path[0]: (where.source, where.commit, where.distance) for path, where in run.origins.items()
    }
    base = origin.head()
    assert told == {
        "a": ("branch", base, 0),
        "b": ("branch", old, 1),
        "c": ("artifact", old, 1),
        "d": ("rerun", base, 0),
        "e": ("rerun", base, 0),
    }
    touched = f"of {old[:12]}: the base has changed it since (changed: d/EVAL.yaml)"
    assert [(rung.source, rung.problem) for rung in run.info.incomplete] == [
        (
            "branch",
            "`c/EVAL.yaml`: `agentevals-data` has no results of it; "
            f"`d/EVAL.yaml`: the results on `agentevals-data` {touched}; "
            "`e/EVAL.yaml`: `agentevals-data` has no results of it",
        ),
        (
            "artifact",
            "`d/EVAL.yaml`: the base has changed it since (changed: d/EVAL.yaml); "
            f"`e/EVAL.yaml`: the run 1 on {old[:12]}: there are no results of it",
        ),
        ("rerun", "all its tests ended in errors"),
        ("file", "there is no `baseline.jsonl` on base (a baseline file counts once it is merged)"),
    ]
    # What changed since an ancestor is asked once, whoever wants to know.
    assert server.routes("compare") == [f"GET /repos/acme/agent/compare/{old}...{base}"]


def test_ladder__git_is_asked_before_github_where_it_has_the_history(
    origin: Repository, server: GitHubServer
) -> None:
    uploaded(origin, server, 1, A, B, C)
    origin.commit("docs", {"docs.md": "1"})
    here = world(origin, server, GitHistory(GitRepository(origin.path)), past(server))
    run = here.climb(artifact=here.artifact)
    assert (set(run.suites), run.info.source, run.info.incomplete) == ({A, B, C}, "artifact", ())
    assert server.routes("compare|commits") == []


def test_ladder__what_is_watched_keeps_an_old_result_away(
    origin: Repository, server: GitHubServer
) -> None:
    """The suite's digests cannot see the agent's own code: main's own regression must not be blamed
    on the pull request."""
    uploaded(origin, server, 1, A)
    origin.commit("a worse agent", {"src/agent.py": "worse"})
    here = world(origin, server)
    rules = Settings.from_environ({"INPUT_WATCH": "src/**"}).watch_rules
    untouched = changed_since(here.tree.suites, rules, here.ancestry.changes, Change)
    store = ArtifactBaseline(
        here.tree, base_tree.FRESH, here.source, "main", here.ancestry, untouched
    )
    run = asyncio.run(store.results(base_tree.select(A)))
    assert run.problems == {A: "the base has changed it since (watch: src/agent.py)"}


def test_ladder__down_to_the_file(origin: Repository, server: GitHubServer) -> None:
    server.permissions["actions"] = "none"
    here = world(origin, server)
    run = here.climb(
        artifact=here.artifact,
        rerun=here.rerun(refusal="on base, `prepare` failed"),
        file=here.file,
    )
    assert (run.suites, run.info.wanted, run.info.problem) == ({}, True, "")
    assert run.problems == dict.fromkeys((A, B, C), "on base, `prepare` failed; mend it")
    assert [rung.source for rung in run.info.incomplete] == ["artifact", "rerun", "file"]
    assert "Add `actions: read`" in run.info.incomplete[0].problem
    assert run.info.incomplete[2].problem.startswith("there is no `baseline.jsonl` on base")


def test_ladder__github_is_down(origin: Repository, server: GitHubServer) -> None:
    server.break_route(InjectedFailure("GET .*", 503, times=1000))
    here = world(origin, server)
    run = here.climb(artifact=here.artifact, rerun=here.rerun())
    assert run.info.source == "rerun"
    assert "GitHub did not respond correctly" in run.info.incomplete[0].problem


# The file

GREETER = """\
name: greeter
tests:
  - id: greets
    criteria: greets by name
    input: Ada
    assert: [{name: by-name, type: contains, value: Ada, required: true}]
  - id: short
    criteria: is short
    input: Bob
    assert: [{type: regex, value: "^.{0,40}$"}]
"""
ECHO = "targets:\n  - {name: default, provider: cli, command: [cat]}\n"


@pytest.fixture
def greeter(tmp_path: Path) -> Repository:
    ignored = {".gitignore": "/agentevals-report/\n"}
    return Repository.create(
        tmp_path / "greeter", {A: GREETER, B: GREETER, ".agentv/targets.yaml": ECHO, **ignored}
    )


def of_file(made: Repository, name: str = "baseline.jsonl") -> BaseRun:
    """What a review would read of the file in the committed tree."""
    settings = Settings()
    checkout = wiring.Checkout.at(made.path, settings, {})
    paths = wiring.suite_paths(checkout, settings)
    found = wiring.load_all(checkout, settings, paths, made.path, {})
    store = FileBaseline(
        base_tree.tree(*found, commit=made.head()),
        base_tree.FRESH,
        (made.path / name).read_bytes(),
        name,
    )
    return asyncio.run(store.results(base_tree.select(*(suite.path for suite in found))))


def test_baseline_write__what_a_run_gave_is_a_base(greeter: Repository) -> None:
    assert command.run(greeter.path, "run", "--samples", "2").code == 0
    done = command.run(greeter.path, "baseline", "write", "baseline.jsonl")
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        f"baseline.jsonl: 2 suites, 4 tests, results of {greeter.head()[:12]}",
        "commit it, and set `baseline-file: baseline.jsonl`",
    ]
    run = of_file(greeter)
    assert {path: [one.verdict for one in there.results] for path, there in run.suites.items()} == {
        A: ["pass"] * 2,
        B: ["pass"] * 2,
    }
    told = run.origins[A]
    assert (told.source, told.commit, told.distance, told.samples) == ("file", greeter.head(), 0, 2)
    (greets, _) = run.suites[A].results
    assert (greets.candidate_answer, [bool(one.output_messages) for one in greets.samples]) == (
        "Ada",
        [False, True],
    )


def test_baseline_write__suites_that_did_not_run_keep_what_they_have(greeter: Repository) -> None:
    assert command.run(greeter.path, "run").code == 0
    assert command.run(greeter.path, "baseline", "write", "data/base.jsonl").code == 0
    first = greeter.head()
    before = (greeter.path / "data/base.jsonl").read_text().splitlines()
    second = greeter.commit(
        "more", {A: GREETER.replace("Ada", "Eve"), ".gitignore": "/agentevals-report/\n/other.*\n"}
    )
    assert command.run(greeter.path, "run", "a", "--output", "other.jsonl").code == 0
    done = command.run(
        greeter.path, "baseline", "write", "data/base.jsonl", "--results", "other.jsonl"
    )
    assert done.code == 0, done.err
    assert f"results of {second[:12]}" in done.out
    assert f"unchanged: {B} (results of {first[:12]})" in done.out
    after = (greeter.path / "data/base.jsonl").read_text().splitlines()
    assert after[4:] == before[4:]
    run = of_file(greeter, "data/base.jsonl")
    assert (run.origins[A].distance, run.origins[B].commit, run.origins[B].distance) == (
        0,
        first,
        None,
    )
    greeter.commit("fewer", {A: None})
    done = command.run(greeter.path, "run", "b")
    done = command.run(greeter.path, "baseline", "write", "data/base.jsonl")
    assert f"dropped: {A} (the suite no longer exists)" in done.out


def test_baseline_write__the_commit_that_a_review_was_of(greeter: Repository) -> None:
    report = greeter.path / "agentevals-report"
    assert command.run(greeter.path, "run").code == 0
    (report / "summary.json").write_text(json.dumps({"headSha": "d" * 40}))
    assert (
        "results of dddddddddddd"
        in command.run(greeter.path, "baseline", "write", "base.jsonl").out
    )


def test_baseline_write__no_result_is_left_out_in_silence(greeter: Repository) -> None:
    greeter.commit("grep", {".agentv/targets.yaml": ECHO.replace("[cat]", "[sh, -c, 'grep Ada']")})
    assert command.run(greeter.path, "run").code == 3
    done = command.run(greeter.path, "baseline", "write", "base.jsonl")
    assert done.code == 2
    assert f"{A}: short: it ended in an error" in done.err
    assert f"{A}: greets" not in done.err
    assert "nothing was written" in done.err
    assert not (greeter.path / "base.jsonl").exists()


@pytest.mark.parametrize("arguments", [("run",), ("review", "--base", "HEAD~1")])
def test_baseline_write__results_of_a_dirty_worktree_are_refused(
    greeter: Repository, arguments: tuple[str, ...]
) -> None:
    """They would be recorded as the results of the clean commit."""
    greeter.commit("more", {A: GREETER.replace("Ada", "Eve")})
    greeter.write({A: GREETER.replace("Ada", "Ida"), "helper.py": ""})
    assert command.run(greeter.path, *arguments).code == 0
    greeter.commit("later")

    done = command.run(greeter.path, "baseline", "write", "base.jsonl")

    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[:2] == [f"not committed: {A}", "not committed: helper.py"]
    assert "commit or ignore them and run again" in done.err
    assert not (greeter.path / "base.jsonl").exists()


def test_baseline_write__the_commit_is_that_of_the_run_and_the_file_itself_may_differ(
    greeter: Repository,
) -> None:
    ran = greeter.head()
    for _ in range(2):
        assert command.run(greeter.path, "run").code == 0
        greeter.git("commit", "--quiet", "--allow-empty", "--message", "later")
        done = command.run(greeter.path, "baseline", "write", "data/base.jsonl")
        assert done.code == 0, done.err
        assert f"results of {ran[:12]}" in done.out
        ran = greeter.head()


@pytest.mark.parametrize("output", [(), ("--output", "some.jsonl")])
def test_baseline_write__results_of_some_tests_are_refused(
    greeter: Repository, output: tuple[str, ...]
) -> None:
    """The tests that did not run would look new in the next review."""
    greeter.commit("ignore", {".gitignore": "/agentevals-report/\n/some.*\n"})
    assert command.run(greeter.path, "run", "--test", "greets", *output).code == 0
    results = ("--results", output[1]) if output else ()

    done = command.run(greeter.path, "baseline", "write", "base.jsonl", *results)

    assert (done.code, done.out) == (2, "")
    assert "has only the tests that match greets" in done.err
    assert "run without `--test`" in done.err


def test_baseline_write__what_it_refuses(greeter: Repository, tmp_path: Path) -> None:
    def refused(*arguments: str) -> str:
        done = command.run(greeter.path, "baseline", "write", *arguments)
        assert (done.code, done.out) == (2, "")
        return done.err

    assert "results.jsonl: cannot be read" in refused("base.jsonl")
    assert command.run(greeter.path, "run").code == 0
    assert "is outside the repository" in refused("../base.jsonl")
    assert f"{A} exists and is not a baseline file: line 1" in refused(A)
    assert "a exists and is not a baseline file: Is a directory" in refused("a")
    assert f"{A}/base.jsonl cannot be written" in refused(f"{A}/base.jsonl")
    (greeter.path / "empty.jsonl").write_text("")
    assert "contains no result" in refused("base.jsonl", "--results", "empty.jsonl")
    rows = (greeter.path / "agentevals-report/results.jsonl").read_text()
    (greeter.path / "twice.jsonl").write_text(rows * 2)
    assert f"{B}: short: it occurs twice" in refused("base.jsonl", "--results", "twice.jsonl")
    assert (greeter.path / A).read_text() == GREETER
