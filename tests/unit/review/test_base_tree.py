"""What the workspace must be at, and which commit it is compared with."""

import asyncio
from pathlib import Path

import pytest

from agentevals_action.errors import ExitCode, GitError, InvalidInput
from agentevals_action.github.events import Event, Job, job_for, local_job
from agentevals_action.review import base_tree
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository
from tests.support.repositories import PullRequest, Repository, pull_request
from tests.support.waiting import Waiting, entered

GONE = "9" * 40
WAITING = Waiting(base_tree)


@pytest.fixture
def request_(tmp_path: Path) -> PullRequest:
    """A pull request whose base branch has moved on since it began."""
    return pull_request(
        tmp_path / "origin", {"EVAL.yaml": "a\n", "x": "1"}, {"EVAL.yaml": "b\n"}, {"main.txt": "1"}
    )


def job_of(
    made: PullRequest, name: str = "pull_request", sha: str | None = None, unsafe: bool = False
) -> Job:
    repository = {"full_name": "acme/agent"}
    head, base = (
        {"sha": made.head, "repo": repository},
        {"sha": made.main, "ref": "main", "repo": repository},
    )
    payload = {"action": "opened", "pull_request": {"number": 1, "head": head, "base": base}}
    return job_for(
        Event(name, payload, sha or made.merge), Settings(allow_unsafe_pull_request_target=unsafe)
    )


def push(before: str, after: str) -> Job:
    return job_for(
        Event("push", {"before": before, "after": after}, after, "refs/heads/main"), Settings()
    )


def never() -> str | None:
    raise AssertionError("the host need not be asked")


@pytest.mark.parametrize("depth", [1, 2, 0])
def test_merge_commit__its_first_parent_at_any_depth(
    tmp_path: Path, request_: PullRequest, depth: int
) -> None:
    workspace = GitRepository(request_.checkout(tmp_path / "workspace", request_.merge, depth).path)
    job = job_of(request_)
    assert WAITING.check_head(workspace, job) == request_.merge
    base = WAITING.resolve_base(workspace, job, request_.merge, never)
    assert base == base_tree.Base(request_.main, "2026-01-02T02:04:05Z")
    assert [
        file.path for file in Waiting(workspace).changed_files(request_.main, request_.merge)
    ] == ["EVAL.yaml"]


def test_head_commit__the_merge_base_in_a_complete_clone(
    tmp_path: Path, request_: PullRequest
) -> None:
    workspace = GitRepository(request_.checkout(tmp_path / "workspace", request_.head, 0).path)
    job = job_of(request_)
    assert WAITING.check_head(workspace, job) == request_.head
    assert WAITING.resolve_base(workspace, job, request_.head, never).sha == request_.base


def test_head_commit__the_hosts_merge_base_at_depth_one(
    tmp_path: Path, request_: PullRequest
) -> None:
    workspace = GitRepository(request_.checkout(tmp_path / "workspace", request_.head).path)
    base = WAITING.resolve_base(workspace, job_of(request_), request_.head, lambda: request_.base)
    assert base.sha == request_.base
    assert Waiting(workspace).has(request_.base)


def test_head_commit__that_is_a_merge_itself_is_compared_where_it_left_main(
    tmp_path: Path, request_: PullRequest
) -> None:
    origin = request_.origin
    origin.git("checkout", "--quiet", "feature")
    origin.git("merge", "--quiet", "--no-edit", "main")
    merged = PullRequest(origin, request_.base, request_.main, origin.head(), request_.merge)
    workspace = GitRepository(merged.checkout(tmp_path / "workspace", merged.head, 0).path)
    assert WAITING.resolve_base(workspace, job_of(merged), merged.head, never).sha == merged.main


def test_head_commit__too_shallow_to_tell_is_a_problem_and_never_nothing(
    tmp_path: Path, request_: PullRequest
) -> None:
    workspace = GitRepository(request_.checkout(tmp_path / "workspace", request_.head).path)
    base = WAITING.resolve_base(workspace, job_of(request_), request_.head, lambda: None)
    assert (base.sha, base.reason) == (None, "")
    assert "too shallow" in base.problem
    assert "fetch-depth: 0" in base.problem


def test_merge_commit__a_base_that_cannot_be_fetched_says_what_to_set(
    tmp_path: Path, request_: PullRequest
) -> None:
    made = request_.checkout(tmp_path / "workspace", request_.merge)
    made.git("remote", "set-url", "origin", (tmp_path / "nowhere").as_uri())
    base = WAITING.resolve_base(GitRepository(made.path), job_of(request_), request_.merge, never)
    assert (base.sha, base.reason) == (None, "")
    assert "could not be fetched" in base.problem
    assert "fetch-depth: 2" in base.problem


def test_unrelated_histories__have_nothing_to_compare_with(
    tmp_path: Path, request_: PullRequest
) -> None:
    origin = request_.origin
    origin.git("checkout", "--quiet", "--orphan", "alone")
    alone = PullRequest(
        origin, request_.base, request_.main, origin.commit("alone"), request_.merge
    )
    workspace = GitRepository(alone.checkout(tmp_path / "workspace", alone.head, 0).path)
    base = WAITING.resolve_base(workspace, job_of(alone), alone.head, never)
    assert (base.sha, base.problem) == (None, "")
    assert "no commit in common" in base.reason


def test_push__before_that_is_gone_is_a_problem(tmp_path: Path, request_: PullRequest) -> None:
    workspace = GitRepository(request_.checkout(tmp_path / "workspace", request_.main).path)
    assert (
        "could not be fetched"
        in WAITING.resolve_base(workspace, push(GONE, request_.main), request_.main, never).problem
    )


def test_push__of_a_new_branch_has_nothing_to_compare_with(
    tmp_path: Path, request_: PullRequest
) -> None:
    workspace = GitRepository(request_.checkout(tmp_path / "workspace", request_.main).path)
    base = WAITING.resolve_base(workspace, push("0" * 40, request_.main), request_.main, never)
    assert (base.sha, base.problem) == (None, "")
    assert "nothing to compare with" in base.reason


def test_merge_group__its_base(tmp_path: Path, request_: PullRequest) -> None:
    workspace = GitRepository(request_.checkout(tmp_path / "workspace", request_.merge).path)
    group = {"merge_group": {"head_sha": request_.merge, "base_sha": request_.main}}
    job = job_for(Event("merge_group", group, request_.merge), Settings())
    assert WAITING.check_head(workspace, job) == request_.merge
    assert WAITING.resolve_base(workspace, job, request_.merge, never).sha == request_.main


def test_check_head__at_another_commit_is_refused_with_what_to_write(
    tmp_path: Path, request_: PullRequest
) -> None:
    workspace = GitRepository(request_.checkout(tmp_path / "workspace", request_.main).path)
    with pytest.raises(
        InvalidInput, match=f"the workspace is at {request_.main[:12]}, which is neither"
    ) as caught:
        WAITING.check_head(workspace, job_of(request_))
    assert "ref: ${{ github.event.pull_request.head.sha }}" in caught.value.hint
    with pytest.raises(InvalidInput, match="which is not the event's commit"):
        WAITING.check_head(workspace, push(request_.base, request_.head))


def test_check_head__the_base_in_pull_request_target_is_refused(
    tmp_path: Path, request_: PullRequest
) -> None:
    """The event's own commit is the base there, which compared with itself is always green."""
    workspace = GitRepository(request_.checkout(tmp_path / "workspace", request_.main).path)
    with pytest.raises(InvalidInput, match="which is neither"):
        WAITING.check_head(
            workspace, job_of(request_, "pull_request_target", request_.main, unsafe=True)
        )


def test_open__without_a_checkout(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    opening = GitRepository.open(tmp_path / "empty", environ={"GITHUB_ACTIONS": "true"})
    with pytest.raises(GitError) as caught:
        asyncio.run(opening)
    assert caught.value.exit_code == ExitCode.INVALID
    assert "actions/checkout" in caught.value.hint


def test_local__the_fork_point_and_the_working_tree(request_: PullRequest) -> None:
    made = request_.origin
    made.git("checkout", "--quiet", "feature")
    made.write({"EVAL.yaml": "c\n", "x": "2"})
    repository = GitRepository(made.path)
    base = WAITING.resolve_base(repository, local_job(made.head(), "main", Settings()), made.head())
    assert base.sha == request_.base
    assert {file.path for file in Waiting(repository).changed_files(base.sha)} == {"EVAL.yaml", "x"}


@pytest.mark.parametrize("revision", ["nothing", "--output=x", "main..feature"])
def test_local__a_revision_that_is_none_is_an_error(request_: PullRequest, revision: str) -> None:
    repository = GitRepository(request_.origin.path)
    with pytest.raises(GitError, match="there is no revision"):
        WAITING.resolve_base(
            repository, local_job(request_.main, revision, Settings()), request_.main
        )


def test_base_worktree__has_the_bases_files_and_is_gone_after(
    tmp_path: Path, request_: PullRequest
) -> None:
    made = Repository(request_.origin.path)
    before = made.snapshot()
    (tmp_path / "temp").mkdir()
    with entered(
        base_tree.base_worktree(GitRepository(made.path), request_.base, tmp_path / "temp")
    ) as tree:
        assert (tree / "EVAL.yaml").read_text() == "a\n"
        assert not tree.is_relative_to(made.path)
        (tree / "left" / "over").mkdir(parents=True)
        (tree / "left" / "over" / "file").write_text("x")
        (tree / "left" / "over").chmod(0o500)
    assert not list((tmp_path / "temp").iterdir())
    assert made.snapshot() == before
    assert not (made.path / ".git" / "worktrees").exists()


def test_base_worktree__never_inside_the_workspace(request_: PullRequest) -> None:
    path = request_.origin.path
    with (
        pytest.raises(GitError, match="lies in the workspace"),
        entered(base_tree.base_worktree(GitRepository(path), request_.base, path)),
    ):
        raise AssertionError("this folder must not be used")


def test_base_worktree__leaves_the_users_own_alone(tmp_path: Path, request_: PullRequest) -> None:
    made = request_.origin
    made.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "own"), request_.head)
    (tmp_path / "own").rename(tmp_path / "unmounted")
    (tmp_path / "temp").mkdir()
    with entered(
        base_tree.base_worktree(GitRepository(made.path), request_.base, tmp_path / "temp")
    ):
        pass
    assert [entry.name for entry in (made.path / ".git" / "worktrees").iterdir()] == ["own"]
