"""The commit that the workspace must have, and the one that it is compared with."""

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agentevals_action.errors import ExitCode, GitError, InvalidInput
from agentevals_action.github.events import Event, job_for, local_job
from agentevals_action.model.job import Job
from agentevals_action.review.inputs import base_tree
from agentevals_action.review.inputs.base_tree import Base
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


def job_of(
    made: PullRequest, name: str = "pull_request", sha: str | None = None, unsafe: bool = False
) -> Job:
    repository = {"full_name": "acme/agent"}
    head, base = (
        {"sha": made.head, "repo": repository},
        {"sha": made.main, "ref": "main", "repo": repository},
    )
    payload = {"action": "opened", "pull_request": {"number": 1, "head": head, "base": base}}
    settings = Settings(allow_unsafe_pull_request_target=unsafe)
    return job_for(Event(name, payload, sha or made.merge), settings)


def push(before: str, after: str) -> Job:
    payload = {"before": before, "after": after}
    return job_for(Event("push", payload, after, "refs/heads/main"), Settings())


def never() -> str | None:
    raise AssertionError("the host need not be asked")


def resolve(
    workspace: Repository, job: Job, head: str, host: Callable[[], str | None] = never
) -> Base:
    base: Base = WAITING.resolve_base(GitRepository(workspace.path), job, head, host)
    return base


@pytest.mark.parametrize("depth", [1, 2, 0])
def test_merge_commit__its_first_parent_at_any_depth(
    folder: Path, request_: PullRequest, depth: int
) -> None:
    made, job = request_.checkout(folder, request_.merge, depth), job_of(request_)
    workspace = Waiting(GitRepository(made.path))
    assert WAITING.check_head(GitRepository(made.path), job) == request_.merge
    assert resolve(made, job, request_.merge) == Base(request_.main, "2026-01-02T02:04:05Z")
    changed = workspace.changed_files(request_.main, request_.merge)
    assert [file.path for file in changed] == ["EVAL.yaml"]


def test_head_commit__the_merge_base_by_the_clone_or_by_the_host(
    folder: Path, tmp_path: Path, request_: PullRequest
) -> None:
    made, job = request_.checkout(folder, request_.head, 0), job_of(request_)
    assert WAITING.check_head(GitRepository(made.path), job) == request_.head
    assert resolve(made, job, request_.head).sha == request_.base
    shallow = request_.checkout(tmp_path / "shallow", request_.head)
    assert resolve(shallow, job, request_.head, lambda: request_.base).sha == request_.base
    assert Waiting(GitRepository(shallow.path)).has(request_.base)


def test_head_commit__that_is_a_merge_itself_is_compared_where_it_left_main(
    folder: Path, request_: PullRequest
) -> None:
    origin = request_.origin
    origin.git("checkout", "--quiet", "feature")
    origin.git("merge", "--quiet", "--no-edit", "main")
    merged = PullRequest(origin, request_.base, request_.main, origin.head(), request_.merge)
    made = merged.checkout(folder, merged.head, 0)
    assert resolve(made, job_of(merged), merged.head).sha == merged.main


def test_base__that_cannot_be_obtained_is_a_problem_with_what_to_set(
    folder: Path, tmp_path: Path, request_: PullRequest
) -> None:
    shallow = request_.checkout(folder, request_.head)
    base = resolve(shallow, job_of(request_), request_.head, lambda: None)
    assert (base.sha, base.reason) == (None, "")
    assert "too shallow" in base.problem
    assert "fetch-depth: 0" in base.problem
    offline = request_.checkout(tmp_path / "offline", request_.merge)
    offline.git("remote", "set-url", "origin", (tmp_path / "nowhere").as_uri())
    base = resolve(offline, job_of(request_), request_.merge)
    assert (base.sha, base.reason) == (None, "")
    assert "could not be fetched" in base.problem
    assert "fetch-depth: 2" in base.problem


def test_base__of_unrelated_histories_is_none(folder: Path, request_: PullRequest) -> None:
    origin = request_.origin
    origin.git("checkout", "--quiet", "--orphan", "alone")
    head = origin.commit("alone")
    alone = PullRequest(origin, request_.base, request_.main, head, request_.merge)
    base = resolve(alone.checkout(folder, head, 0), job_of(alone), head)
    assert (base.sha, base.problem) == (None, "")
    assert "no commit in common" in base.reason


def test_base__of_other_events(folder: Path, tmp_path: Path, request_: PullRequest) -> None:
    made = request_.checkout(folder, request_.main)
    gone = resolve(made, push(GONE, request_.main), request_.main)
    assert "could not be fetched" in gone.problem
    new = resolve(made, push("0" * 40, request_.main), request_.main)
    assert (new.sha, new.problem) == (None, "")
    assert "nothing to compare with" in new.reason
    group = {"merge_group": {"head_sha": request_.merge, "base_sha": request_.main}}
    job = job_for(Event("merge_group", group, request_.merge), Settings())
    merged = request_.checkout(tmp_path / "merged", request_.merge)
    assert WAITING.check_head(GitRepository(merged.path), job) == request_.merge
    assert resolve(merged, job, request_.merge).sha == request_.main


def test_check_head__at_another_commit_is_refused_with_what_to_write(
    folder: Path, request_: PullRequest
) -> None:
    workspace = GitRepository(request_.checkout(folder, request_.main).path)
    at = f"the workspace is at {request_.main[:12]}, which is neither"
    with pytest.raises(InvalidInput, match=at) as caught:
        WAITING.check_head(workspace, job_of(request_))
    assert "ref: ${{ github.event.pull_request.head.sha }}" in caught.value.hint
    with pytest.raises(InvalidInput, match="neither the event's commit"):
        WAITING.check_head(workspace, push(request_.base, request_.head))
    # The event's own commit is the base there, which compared with itself is always green.
    job = job_of(request_, "pull_request_target", request_.main, unsafe=True)
    with pytest.raises(InvalidInput, match="which is neither"):
        WAITING.check_head(workspace, job)


def test_open__without_a_checkout(tmp_path: Path) -> None:
    opening = GitRepository.open(tmp_path, environ={"GITHUB_ACTIONS": "true"})
    with pytest.raises(GitError) as caught:
        asyncio.run(opening)
    assert caught.value.exit_code == ExitCode.INVALID
    assert "actions/checkout" in caught.value.hint


def test_local__the_fork_point_and_the_working_tree(request_: PullRequest) -> None:
    made = request_.origin
    made.git("checkout", "--quiet", "feature")
    made.write({"EVAL.yaml": "c\n", "x": "2"})
    base = resolve(made, local_job(made.head(), "main", Settings()), made.head())
    assert base.sha == request_.base
    changed = Waiting(GitRepository(made.path)).changed_files(base.sha)
    assert {file.path for file in changed} == {"EVAL.yaml", "x"}
    for revision in ("nothing", "--output=x", "main..feature"):
        with pytest.raises(GitError, match="there is no revision"):
            resolve(made, local_job(request_.main, revision, Settings()), request_.main)


def test_local__a_file_that_changed_when_git_wrote_its_index_is_changed(
    request_: PullRequest,
) -> None:
    """Its size and time are as git knows them; the time of the index shows that they prove nothing."""
    made = request_.origin
    made.git("config", "core.trustctime", "false")
    made.git("update-index", "--refresh")
    time = (made.path / "x").stat().st_mtime_ns
    made.write({"x": "2"})
    for name in ("x", ".git/index"):
        os.utime(made.path / name, ns=(time, time))
    changed = Waiting(GitRepository(made.path)).changed_files(made.head())
    assert [file.path for file in changed] == ["x"]


def test_base_worktree__has_the_bases_files_and_is_gone_after(
    tmp_path: Path, request_: PullRequest
) -> None:
    made, temp = request_.origin, tmp_path / "temp"
    made.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "own"), request_.head)
    (tmp_path / "own").rename(tmp_path / "unmounted")
    before = made.snapshot()
    killed = made.path / ".git/worktrees/agentevals-tree-killed"
    shutil.copytree(made.path / ".git/worktrees/own", killed)
    (killed / "gitdir").write_text(f"{temp}/agentevals-tree-killed/agentevals-tree-killed/.git\n")
    temp.mkdir()
    with entered(base_tree.base_worktree(GitRepository(made.path), request_.base, temp)) as tree:
        assert (tree / "EVAL.yaml").read_text() == "a\n"
        assert not tree.is_relative_to(made.path)
        (tree / "left" / "over").mkdir(parents=True)
        (tree / "left" / "over" / "file").write_text("x")
        (tree / "left" / "over").chmod(0o500)
    assert list(temp.iterdir()) == []
    assert made.snapshot() == before
    assert [entry.name for entry in (made.path / ".git" / "worktrees").iterdir()] == ["own"]


def test_base_worktree__never_inside_the_workspace(request_: PullRequest) -> None:
    path = request_.origin.path
    with (
        pytest.raises(GitError, match="lies in the workspace"),
        entered(base_tree.base_worktree(GitRepository(path), request_.base, path)),
    ):
        raise AssertionError("this folder must not be used")
