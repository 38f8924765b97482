"""Results on a branch of the repository, over real HTTP: what is read, what is written, what is
refused."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.baselines import history_format
from agentevals_action.baselines.trends import QuarantinedTest
from agentevals_action.errors import HostError
from agentevals_action.github import data_branch
from agentevals_action.github.client.api import RunContext
from agentevals_action.github.data_branch import DataBranch
from agentevals_action.github.host import GitHubHost
from agentevals_action.model.history import SuiteHistory
from agentevals_action.model.result import SuiteRun
from tests.support import results
from tests.support.github_git import Commit
from tests.support.github_http import InjectedFailure
from tests.support.github_server import GitHubServer

BRANCH, PATH = "agentevals-data", "evals/EVAL.yaml"
C1, C2 = "1" * 40, "2" * 40
T1, T2 = "2026-01-01T10:00:00Z", "2026-01-02T10:00:00Z"
NAME = history_format.file_name(PATH)
REF = rf"heads/{BRANCH}$"
#: The files of the branch besides those of the suites.
OWN = {"index.json", "README.md", "trends.json", "history.html"}


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with GitHubServer() as server:
        server.permissions["contents"] = "write"
        yield server


def memory(
    server: GitHubServer, waits: list[float] | None = None, branch: str = BRANCH, **changes: Any
) -> DataBranch:
    target = RunContext("acme/agent", C1, server.token, server.url, server.graphql_url, **changes)
    return GitHubHost(target, (waits if waits is not None else []).append).data_branch(branch)


def run(answer: str = "an answer", path: str = PATH) -> SuiteRun:
    return results.run(results.result(answer=answer), path=path)


def remembered(server: GitHubServer, path: str = PATH) -> SuiteHistory:
    return memory(server).read([path]).histories[path]


def commits(server: GitHubServer, path: str = PATH) -> list[str]:
    return [sample.commit for sample in remembered(server, path).samples()]


def test_first_write__makes_a_branch_without_parents(server: GitHubServer) -> None:
    server.git.put("main", {"code.py": "pass"})
    assert memory(server).store([run()], C1, T1) == ()
    (commit,) = server.git.log(BRANCH)
    assert (commit.parents, commit.message) == ((), "Results of 111111111111\n\n[skip ci]")
    assert server.git.files(BRANCH).keys() == {NAME, *OWN}
    assert commits(server) == [C1]


def test_later_writes__stand_on_the_earlier_and_are_never_forced(server: GitHubServer) -> None:
    memory(server).store([run(path="other/EVAL.yaml")], C1, T1)
    memory(server).store([run()], C1, T1)
    assert memory(server).store([run()], C2, T2) == ()
    assert [len(commit.parents) for commit in server.git.log(BRANCH)] == [1, 1, 0]
    assert (commits(server), commits(server, "other/EVAL.yaml"), server.git.forced) == (
        [C1, C2],
        [C1],
        0,
    )


def test_same_results_again__write_nothing(server: GitHubServer) -> None:
    memory(server).store([run()], C1, T1)
    assert memory(server).store([run()], C1, T1) == ()
    assert (
        memory(server).store([results.run(results.result(verdict=None), path=PATH)], C2, T2) == ()
    )
    assert (len(server.git.log(BRANCH)), len(server.routes("POST .*/git/commits"))) == (1, 1)


def test_reading__takes_one_request_and_one_a_suite(server: GitHubServer) -> None:
    for path in (PATH, "other/EVAL.yaml", "third/EVAL.yaml"):
        memory(server).store([run(path=path)], C1, T1)
    server.requests.clear()
    read = memory(server).read([PATH, "third/EVAL.yaml", "fourth/EVAL.yaml"])
    assert (set(read.histories), read.damaged) == ({PATH, "third/EVAL.yaml"}, {})
    assert len(server.requests) == 3


def test_page__has_the_runs_of_all_suites_and_links_their_commits(server: GitHubServer) -> None:
    held = QuarantinedTest(id="test", owner="@ada", reason="is moody", expires="2026-02-01")
    memory(server).store([run(path="other/EVAL.yaml")], C1, T1)
    assert memory(server).store([run()], C2, T2, {PATH: [held]}) == ()
    page = server.git.files(BRANCH)["history.html"]
    assert '"commits":"https://github.com/acme/agent/commit/"' in page
    for words in (PATH, "other/EVAL.yaml", C1[:12], C2[:12], "is moody"):
        assert words in page
    assert [trend.path for trend in memory(server).trends()] == [PATH, "other/EVAL.yaml"]


def test_trends__without_a_branch_are_none_and_a_failure_is_an_error(server: GitHubServer) -> None:
    assert memory(server).trends() == ()
    server.break_route(InjectedFailure("GET .*/git/trees/", 502, times=9))
    with pytest.raises(HostError, match="`agentevals-data` could not be read"):
        memory(server).trends()


def test_branch_name__may_have_a_slash(server: GitHubServer) -> None:
    memory(server, branch="data/evals").store([run()], C1, T1)
    assert memory(server, branch="data/evals").store([run()], C2, T2) == ()
    assert memory(server, branch="data/evals").read([PATH]).histories.keys() == {PATH}


def test_large_files__are_sent_on_their_own(server: GitHubServer) -> None:
    many = [results.result(f"test-{number}", answer="x" * 60_000) for number in range(12)]
    assert (
        memory(server).store([results.run(*many, path=PATH), run(path="other/EVAL.yaml")], C1, T1)
        == ()
    )
    assert len(server.routes("POST .*/git/blobs")) == 1
    assert len(remembered(server).tests) == 12


def test_other_files_of_the_branch__are_left_alone(server: GitHubServer) -> None:
    memory(server).store([run()], C1, T1)
    server.git.put(
        BRANCH,
        {
            "notes.txt": "mine",
            "suites/notes.json": "mine too",
            "index.json": None,
            "README.md": None,
        },
    )
    server.git.put(BRANCH, {"index.json": "damaged"})
    assert memory(server).store([run()], C2, T2) == ()
    assert {"notes.txt", "suites/notes.json", NAME, "README.md"} < server.git.files(BRANCH).keys()


def test_branch_of_somebody_else__is_not_written(server: GitHubServer) -> None:
    server.git.put("main", {"code.py": "pass", "README.md": "ours"})
    (notice,) = memory(server, branch="main").store([run()], C1, T1)
    words = "the branch contains something else; name another one in `baseline-branch`."
    assert notice == f"The results were not stored on `main`: {words}"
    assert (len(server.git.log("main")), server.routes("POST|PATCH")) == (1, [])


@pytest.mark.parametrize("content", ["{", '{"version": 9}', b"\xff\xfe"])
def test_damaged_file__is_reported_and_replaced(server: GitHubServer, content: str | bytes) -> None:
    memory(server).store([run(), run(path="other/EVAL.yaml")], C1, T1)
    server.git.put(BRANCH, {NAME: content})
    read = memory(server).read([PATH, "other/EVAL.yaml"])
    assert (set(read.histories), set(read.damaged)) == ({"other/EVAL.yaml"}, {PATH})
    (notice,) = memory(server).store([run()], C2, T2)
    assert notice.startswith("The stored results of `evals/EVAL.yaml` were damaged (")
    assert (commits(server), commits(server, "other/EVAL.yaml")) == ([C2], [C1])


def test_file_that_is_too_large__is_not_fetched(
    server: GitHubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory(server).store([run()], C1, T1)
    monkeypatch.setattr(history_format, "FILE_BYTES", 100)
    server.requests.clear()
    assert memory(server).read([PATH]).damaged == {PATH: "it is empty, too large or not a text"}
    assert len(server.requests) == 1


def test_huge_answer__is_left_out_and_reported(server: GitHubServer) -> None:
    (notice,) = memory(server).store([run(answer="x" * 1_000_000)], C1, T1)
    assert (
        notice
        == "1 answer of `evals/EVAL.yaml` could not be stored to be scored again: more than 64 KiB, nested too deeply, or not JSON."
    )
    assert len(server.git.files(BRANCH)[NAME]) < 1_000


def test_token_that_only_reads__is_a_notice_that_names_the_permission(server: GitHubServer) -> None:
    server.permissions["contents"] = "read"
    (notice,) = memory(server).store([run()], C1, T1)
    assert notice == (
        "The results were not stored on `agentevals-data`: the token lacks `contents: write` (GitHub replied 403: Resource not accessible "
        "by integration). Add `contents: write` to the `permissions:` of the job."
    )
    server.refusal = (404, "Not Found")
    server.permissions["contents"] = "none"
    (notice,) = memory(server).store([run()], C1, T1)
    assert "lacks `contents: write` (GitHub replied 404: Not Found)" in notice
    (notice,) = memory(server, without_secrets="Dependabot caused this run").store([run()], C1, T1)
    assert notice.endswith(
        "its token is read-only by default: add `contents: write` to the `permissions:` of the job."
    )


def test_read__states_why_it_fails(server: GitHubServer) -> None:
    nothing = "`agentevals-data` could not be read: there is no such branch yet \\(runs on the default branch write it\\)"
    with pytest.raises(HostError, match=nothing):
        memory(server).read([PATH])
    server.permissions["contents"] = "none"
    with pytest.raises(HostError, match="could not be read: the token lacks `contents: read`"):
        memory(server).read([PATH])
    server.break_route(InjectedFailure("GET .*/git/trees/", 502, times=9))
    with pytest.raises(
        HostError,
        match=r"`agentevals-data` could not be read: GitHub did not respond correctly \(502: Server Error\)$",
    ):
        memory(server).read([PATH])


def test_branch_that_is_not_listed_whole__is_neither_read_nor_written(server: GitHubServer) -> None:
    memory(server).store([run()], C1, T1)
    server.git.tree_limit = 2
    with pytest.raises(
        HostError,
        match=r"`agentevals-data` could not be read: the branch contains more files than GitHub lists$",
    ):
        memory(server).read([PATH])
    (notice,) = memory(server).store([run()], C2, T2)
    assert (
        notice
        == "The results were not stored on `agentevals-data`: the branch contains more files than GitHub lists."
    )
    assert len(server.git.log(BRANCH)) == 1


@pytest.mark.parametrize(
    ("route", "status"),
    [
        (r"GET .*git/ref/", 0),
        (r"GET .*git/ref/", 502),
        ("GET .*/git/trees", 502),
        ("POST .*/git/trees", 502),
        ("POST .*/git/commits", 502),
        ("PATCH .*/git/refs", 0),
        ("PATCH .*/git/refs", 502),
    ],
)
def test_short_outage__is_waited_for(server: GitHubServer, route: str, status: int) -> None:
    memory(server).store([run()], C1, T1)
    server.break_route(InjectedFailure(route, status, times=2))
    assert memory(server).store([run()], C2, T2) == ()
    assert commits(server) == [C1, C2]


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("status", [0, 502])
def test_write_whose_answer_was_lost__is_there_once(
    server: GitHubServer, first: bool, status: int
) -> None:
    if not first:
        memory(server).store([run()], C1, T1)
    server.break_route(InjectedFailure("(POST|PATCH) .*/git/refs", status, after_write=True))
    assert memory(server).store([run()], C2, T2) == ()
    assert commits(server) == [C2] if first else [C1, C2]
    assert len(server.git.log(BRANCH)) == (1 if first else 2)


def test_long_outage__is_a_notice(server: GitHubServer) -> None:
    waits: list[float] = []
    server.break_route(InjectedFailure("POST .*/git/trees", 503, times=9))
    (notice,) = memory(server, waits).store([run()], C1, T1)
    assert (
        notice
        == "The results were not stored on `agentevals-data`: GitHub did not respond correctly (503: Server Error)."
    )
    assert len(waits) == 3


def test_rule_that_forbids_the_update__is_a_notice_after_a_few_tries(server: GitHubServer) -> None:
    memory(server).store([run()], C1, T1)
    server.break_route(
        InjectedFailure(
            "PATCH .*/git/refs", 422, times=99, message="Repository rule violations found"
        )
    )
    (notice,) = memory(server).store([run()], C2, T2)
    assert (
        notice
        == "The results were not stored on `agentevals-data`: GitHub refused it (422: Repository rule violations found)."
    )
    assert len(server.routes("PATCH")) == 3


def others(server: GitHubServer, times: int, first: bool = False) -> DataBranch:
    """A writer before whose every write but the last somebody else writes."""
    left = [times]

    before = server.git._create_ref if first else server.git._update_ref

    def disturbed(*given: Any) -> Any:
        if left[0]:
            left[0] -= 1
            server.git.put(BRANCH, {f"suites/{left[0]}.txt": "by somebody else"})
        return before(*given)

    setattr(server.git, "_create_ref" if first else "_update_ref", disturbed)
    return memory(server)


def test_branch_that_moved__is_read_again(server: GitHubServer) -> None:
    memory(server).store([run()], C1, T1)
    assert others(server, 5).store([run()], C2, T2) == ()
    assert (commits(server), len(server.git.log(BRANCH)), server.git.forced) == ([C1, C2], 7, 0)


def test_branch_that_appeared__is_written_on_top_of(server: GitHubServer) -> None:
    assert others(server, 1, first=True).store([run()], C1, T1) == ()
    assert server.git.files(BRANCH).keys() == {"suites/0.txt", NAME, *OWN}
    assert [
        isinstance(commit, Commit) and len(commit.parents) for commit in server.git.log(BRANCH)
    ] == [1, 0]


def test_branch_that_never_stands_still__is_a_notice(server: GitHubServer) -> None:
    random.seed(1)  # pauses that together are shorter than the waiting time of a run
    memory(server).store([run()], C1, T1)
    (notice,) = others(server, 99).store([run()], C2, T2)
    assert (
        notice
        == "The results were not stored on `agentevals-data`: too many other runs were writing to it."
    )
    assert len(server.routes("PATCH")) == data_branch.MAX_ATTEMPTS


def test_branch_that_was_deleted_meanwhile__is_made_again(server: GitHubServer) -> None:
    memory(server).store([run()], C1, T1)
    update = server.git._update_ref

    def deleted(*given: Any) -> Any:
        server.git.refs.clear()
        return update(*given)

    server.git._update_ref = deleted  # type: ignore[method-assign,assignment]  # what happens at that moment is the test
    assert memory(server).store([run()], C2, T2) == ()
    assert (commits(server), len(server.git.log(BRANCH))) == ([C2], 1)


def test_no_results__ask_nothing_to_be_written(server: GitHubServer, tmp_path: Path) -> None:
    assert memory(server).store([], C1, T1) == ()
    assert server.routes("POST|PATCH") == []
