"""The branch store: many writers at once, and a base that is read from what they
wrote."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentevals_action.baselines.ancestry import Ancestry, GitHistory
from agentevals_action.baselines.branch import BranchBaseline
from agentevals_action.github.client.api import RunContext
from agentevals_action.github.data_branch import DataBranch
from agentevals_action.github.host import GitHubHost
from agentevals_action.model.baseline import BaselineOrigin, BaseRun
from agentevals_action.model.suite import Suite
from agentevals_action.review.change.selection import Change
from agentevals_action.review.change.unchanged_since import changed_since
from agentevals_action.system.git import GitRepository
from tests.support import base_tree, results
from tests.support.github_server import GitHubServer
from tests.support.repositories import Repository

BRANCH, PATH = "agentevals-data", "evals/EVAL.yaml"
#: One writer in a process of its own: API, token, number.
WRITER = """
import sys, time
from agentevals_action.github.host import GitHubHost
from agentevals_action.github.client.api import RunContext
from tests.support import results
url, token, number = sys.argv[1:]
memory = GitHubHost(RunContext("acme/agent", "a" * 40, token, url, url + "/graphql"), lambda s: time.sleep(s / 100)).data_branch("agentevals-data")
print(memory.store([results.run(results.result(), path="evals/EVAL.yaml")], f"{int(number):040x}", f"2026-01-01T00:00:{int(number):02}Z"))
"""


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with GitHubServer() as server:
        server.permissions["contents"] = "write"
        yield server


def hurried(seconds: float) -> None:
    """A pause at a hundredth of its length: real, so that writers come apart."""
    time.sleep(seconds / 100)


def memory(server: GitHubServer) -> DataBranch:
    return GitHubHost(
        RunContext("acme/agent", "a" * 40, server.token, server.url, server.graphql_url), hurried
    ).data_branch(BRANCH)


def stored(server: GitHubServer, path: str) -> list[str]:
    return sorted(sample.commit for sample in memory(server).read([path]).histories[path].samples())


@pytest.mark.slow
@pytest.mark.parametrize("alike", [True, False])
def test_many_writers_at_once__lose_nothing(server: GitHubServer, alike: bool) -> None:
    writers = 24
    start = threading.Barrier(writers)
    notices: list[str] = []

    def write(number: int) -> None:
        path = PATH if alike else f"suite-{number}/EVAL.yaml"
        start.wait()
        notices.extend(
            memory(server).store(
                [results.run(results.result(), path=path)],
                f"{number:040x}",
                f"2026-01-01T00:00:{number:02}Z",
            )
        )

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert notices == []
    names = [f"{number:040x}" for number in range(writers)]
    found = (
        stored(server, PATH)
        if alike
        else [
            name
            for number in range(writers)
            for name in stored(server, f"suite-{number}/EVAL.yaml")
        ]
    )
    assert found == names
    assert (len(server.git.log(BRANCH)), server.git.forced) == (writers, 0)
    rows = [
        line
        for line in server.git.files(BRANCH)["README.md"].splitlines()
        if line.startswith("| `")
    ]
    assert len(rows) == (1 if alike else writers)


@pytest.mark.slow
def test_writers_in_processes_of_their_own__lose_nothing(server: GitHubServer) -> None:
    server.latency = 0.002
    commands = [
        [sys.executable, "-c", WRITER, server.url, server.token, str(number)] for number in range(3)
    ]
    root = Path(__file__).parents[2]
    children = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root)
        for command in commands
    ]
    assert [child.communicate(timeout=100)[0] for child in children] == ["()\n"] * 3
    assert stored(server, PATH) == [f"{number:040x}" for number in range(3)]


def given(server: GitHubServer, repository: Repository, base: str, suite: Suite) -> BaseRun:
    tree = base_tree.tree(suite, commit=base)
    ancestry = Ancestry(base, [GitHistory(GitRepository(repository.path, environ={}))])
    untouched = changed_since(tree.suites, (), ancestry.changes, Change)
    store = BranchBaseline(tree, base_tree.FRESH, memory(server), BRANCH, ancestry, untouched)
    return asyncio.run(store.results(base_tree.select()))


def test_base__is_read_from_what_the_default_branch_wrote(
    server: GitHubServer, tmp_path: Path
) -> None:
    repository = Repository.create(tmp_path / "repository", base_tree.FILES)
    suite = base_tree.greeter(repository.path)
    first = repository.git("rev-parse", "HEAD")
    memory(server).store(
        [results.run(*base_tree.results_of(suite), path=PATH)], first, "2026-01-08T00:00:00Z"
    )
    repository.commit("elsewhere", {"README.md": "nothing of it"})
    second = repository.git("rev-parse", "HEAD")
    failing = base_tree.results_of(suite, {"short": {"verdict": "fail"}})
    memory(server).store([results.run(*failing, path=PATH)], second, "2026-01-09T00:00:00Z")

    found = given(server, repository, second, suite)
    assert found.origins == {
        PATH: BaselineOrigin("branch", second, 0, "2026-01-09T00:00:00.000Z", 2, stale=False)
    }
    assert [one.verdict for one in found.suites[PATH].results[1].samples] == ["pass", "fail"]

    repository.commit("elsewhere again", {"README.md": "still nothing of it"})
    third = repository.git("rev-parse", "HEAD")
    assert given(server, repository, third, suite).origins[PATH].distance == 1

    repository.commit(
        "targets", {".agentv/targets.yaml": base_tree.FILES[".agentv/targets.yaml"] + "# other\n"}
    )
    fourth = repository.git("rev-parse", "HEAD")
    words = given(server, repository, fourth, base_tree.greeter(repository.path)).problems[PATH]
    assert words.startswith(
        f"the results on `agentevals-data` of {second[:12]}: the base has changed it since ("
    )
