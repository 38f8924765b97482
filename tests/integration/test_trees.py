"""Worktrees of runs that are stopped or killed, and workspaces that belong to somebody else."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentevals_action.github.events import Event, job_for
from agentevals_action.review.change import base_tree
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository
from agentevals_action.system.protection import restore_owner
from tests.support import command, hold_worktree
from tests.support.repositories import PullRequest, pull_request
from tests.support.waiting import Waiting, entered

ROOT = Path(__file__).resolve().parents[2]
USER, GROUP = 1001, 127


@pytest.fixture
def request_(tmp_path: Path) -> PullRequest:
    (tmp_path / "temp").mkdir()
    return pull_request(
        tmp_path / "origin", {"EVAL.yaml": "a\n"}, {"EVAL.yaml": "b\n"}, {"main.txt": "1"}
    )


@contextmanager
def holding(made: PullRequest, temp: Path) -> Iterator[tuple[command.Process, Path]]:
    """A process that has a base worktree open until the file `end` is in its folder's parent."""
    arguments = [str(made.origin.path), made.base, str(temp), str(temp.parent / "end")]
    with command.start_with_pipes(
        ROOT, arguments, command.environment(), module=hold_worktree.__name__
    ) as process:
        assert process.stdout
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def entries(made: PullRequest) -> list[str]:
    folder = made.origin.path / ".git" / "worktrees"
    return [entry.name for entry in folder.iterdir()] if folder.is_dir() else []


def test_base_worktree__a_killed_runs_is_put_away_by_the_next(
    tmp_path: Path, request_: PullRequest
) -> None:
    with holding(request_, tmp_path / "temp") as (process, tree):
        process.kill()
        process.wait(30)
    assert (tree / "EVAL.yaml").exists()
    with entered(
        base_tree.base_worktree(
            GitRepository(request_.origin.path), request_.base, tmp_path / "temp"
        )
    ) as again:
        assert not tree.exists()
        assert entries(request_) == [again.name]
    assert entries(request_) == []


def test_base_worktree__a_living_runs_is_left_alone(tmp_path: Path, request_: PullRequest) -> None:
    with holding(request_, tmp_path / "temp") as (process, tree):
        with entered(
            base_tree.base_worktree(
                GitRepository(request_.origin.path), request_.base, tmp_path / "temp"
            )
        ):
            pass
        assert (tree / "EVAL.yaml").exists()
        (tmp_path / "end").touch()
        assert process.wait(30) == 0


def test_base_worktree__of_a_container_that_is_gone(tmp_path: Path, request_: PullRequest) -> None:
    """Its temporary folder went with it; what git keeps lies in the workspace."""
    (tmp_path / "container").mkdir()
    with holding(request_, tmp_path / "container") as (process, tree):
        process.kill()
        process.wait(30)
    (tmp_path / "container").rename(tmp_path / "out of sight")
    assert entries(request_) == [tree.name]
    with entered(
        base_tree.base_worktree(
            GitRepository(request_.origin.path), request_.base, tmp_path / "temp"
        )
    ):
        pass
    assert entries(request_) == []


def test_remove_abandoned__takes_no_strangers_folder_and_follows_no_link(
    tmp_path: Path, request_: PullRequest
) -> None:
    temp = tmp_path / "temp"
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "lock").touch()
    (temp / "agentevals-tree-link").symlink_to(tmp_path / "precious")
    (temp / "agentevals-tree-making").mkdir()
    (temp / "agentevals-tree-dead").mkdir()
    (temp / "agentevals-tree-dead" / "lock").touch()
    asyncio.run(base_tree.remove_abandoned(GitRepository(request_.origin.path), temp))
    assert sorted(path.name for path in temp.iterdir()) == [
        "agentevals-tree-link",
        "agentevals-tree-making",
    ]
    assert (tmp_path / "precious" / "lock").exists()


as_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can make a workspace of another owner"
)


def give_to_another(path: Path) -> None:
    for folder, folders, files in os.walk(path):
        for name in (".", *folders, *files):
            os.chown(Path(folder, name), USER, GROUP, follow_symlinks=False)


def owned_by_root(path: Path) -> list[str]:
    below = (
        Path(folder, name)
        for folder, folders, files in os.walk(path)
        for name in (*folders, *files)
    )
    return [str(one.relative_to(path)) for one in below if one.lstat().st_uid == 0]


@as_root
def test_another_owner__head_base_and_worktree_at_depth_one(
    tmp_path: Path, request_: PullRequest
) -> None:
    made = request_.checkout(tmp_path / "workspace", request_.merge)
    give_to_another(made.path)
    refused = subprocess.run(
        ["git", "status"],
        cwd=made.path,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
        capture_output=True,
    )
    assert b"dubious ownership" in refused.stderr

    workspace = GitRepository(made.path)
    repository = {"full_name": "acme/agent"}
    sides = {
        side: {"sha": sha, "ref": side, "repo": repository}
        for side, sha in (("head", request_.head), ("base", request_.main))
    }
    job = job_for(
        Event("pull_request", {"pull_request": {"number": 1, **sides}}, request_.merge),
        Settings(),
    )
    trees = Waiting(base_tree)
    base = trees.resolve_base(workspace, job, trees.check_head(workspace, job))
    assert base.sha == request_.main
    with entered(base_tree.base_worktree(workspace, request_.main, tmp_path / "temp")) as tree:
        assert (tree / "main.txt").exists()
    assert owned_by_root(made.path)

    (made.path / "agentevals-report").mkdir()
    (made.path / "agentevals-report" / "results.jsonl").write_text("")
    asyncio.run(restore_owner(made.path))
    assert owned_by_root(made.path) == []


@pytest.mark.slow
@as_root
def test_restore_owner__of_a_folder_that_is_deeper_than_the_stack_of_python(tmp_path: Path) -> None:
    """Attack: an agent leaves such a folder, and the checkout keeps the owner of the agent."""
    os.chown(tmp_path, USER, GROUP)
    (tmp_path / "other").mkdir()
    script = "import os\nfor name in ['top', *'d' * 3000]: os.mkdir(name); os.chdir(name)"
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    asyncio.run(restore_owner(tmp_path))
    found = subprocess.run(["find", ".", "-user", "0"], cwd=tmp_path, capture_output=True)
    assert found.stdout == b""
    subprocess.run(["rm", "-rf", "top"], cwd=tmp_path, check=True)


@as_root
def test_restore_owner__follows_no_link(tmp_path: Path) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    (outside / "file").write_text("x")
    (workspace / "report").mkdir()
    (workspace / "report" / "folder").symlink_to(outside)
    (workspace / "report" / "file").symlink_to(outside / "file")
    (workspace / "report" / "second name").hardlink_to(outside / "file")
    os.chown(workspace, USER, GROUP)
    asyncio.run(restore_owner(workspace))
    assert (workspace / "report").lstat().st_uid == USER
    assert (workspace / "report" / "folder").lstat().st_uid == USER
    assert [path.lstat().st_uid for path in (outside, outside / "file")] == [0, 0]
