"""Workspaces that belong to somebody else."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentevals_action.github.events import Event, job_for
from agentevals_action.review.inputs import base_tree
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository
from agentevals_action.system.protection import restore_owner
from tests.support.repositories import PullRequest, pull_request
from tests.support.waiting import Waiting, entered

USER, GROUP = 1001, 127


@pytest.fixture
def request_(tmp_path: Path) -> PullRequest:
    (tmp_path / "temp").mkdir()
    return pull_request(
        tmp_path / "origin", {"EVAL.yaml": "a\n"}, {"EVAL.yaml": "b\n"}, {"main.txt": "1"}
    )


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
    return [str(file.relative_to(path)) for file in below if file.lstat().st_uid == 0]


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
