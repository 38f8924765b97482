"""Repositories in workspaces: at their commit, fetched once, complete and on their own, with nothing
of ours in them."""

import asyncio
from functools import cache
from pathlib import Path

import pytest

from agentevals_action.errors import AttemptError
from agentevals_action.execution.workspaces.pool import WorkspaceFolder
from tests.support import git_http, repositories, workspaces


def origin(path: Path) -> repositories.Repository:
    """Three commits on `main`, a branch, and a tag."""
    return _origin().copy(path)


@cache
def _origin() -> repositories.Repository:
    made = repositories.Repository.create(
        repositories.new_folder(), {"a.txt": "1\n", "lib/x.txt": "x\n", "docs/y.txt": "y\n"}
    )
    made.git("tag", "first")
    made.commit("second", {"a.txt": "2\n"})
    made.commit("third", {"a.txt": "3\n"})
    made.git("checkout", "--quiet", "-b", "topic")
    made.commit("topic", {"a.txt": "topic\n"})
    made.git("checkout", "--quiet", "main")
    return made


def entered(
    tmp_path: Path, fields: str, count: int = 1, isolation: str = "shared"
) -> list[WorkspaceFolder]:
    """The folders of samples, in a suite with one repository."""
    root = workspaces.suite(
        tmp_path / "repository", f"  isolation: {isolation}\n  repos: [{{path: app, {fields}}}]", {}
    )
    job = workspaces.run(root, tmp_path / "scratch")

    async def enter() -> list[WorkspaceFolder]:
        return list(await asyncio.gather(*(job.enter() for _ in range(count))))

    return asyncio.run(enter())


def content(folder: WorkspaceFolder, name: str = "a.txt") -> str:
    return (folder.path / "app" / name).read_text()


@pytest.mark.parametrize(
    ("commit", "expected"),
    [
        ("", "3\n"),
        (", commit: main", "3\n"),
        (", commit: topic", "topic\n"),
        (", base_commit: first", "1\n"),
        (", commit: topic~2", "2\n"),
        (", commit: {lost}", "lost\n"),
        (", commit: refs/pull/1/head", "lost\n"),
    ],
)
def test_commit__is_checked_out(tmp_path: Path, commit: str, expected: str) -> None:
    made = origin(tmp_path / "repository" / "origin")
    lost = made.commit("lost", {"a.txt": "lost\n"})
    made.git("update-ref", "refs/pull/1/head", lost)
    made.git("reset", "--quiet", "--hard", "HEAD^")
    if "{lost}" in commit:  # no reference leads to it
        made.git("update-ref", "-d", "refs/pull/1/head")
    (folder,) = entered(tmp_path, f"repo: ./origin{commit.format(lost=lost)}")
    assert content(folder) == expected


def test_source__the_repository_under_test_itself(tmp_path: Path) -> None:
    root = workspaces.suite(
        tmp_path / "repository", "  repos: [{path: ., repo: /, commit: HEAD}]", {"src/x": "1\n"}
    )
    repositories.Repository.create(root).commit("first")
    (root / "src" / "x").write_text("not committed\n")
    job = workspaces.run(root, tmp_path / "scratch")
    folder = asyncio.run(job.enter())
    assert (folder.path / "src" / "x").read_text() == "1\n"


def test_source__shallow_and_detached_as_a_workflow_checks_out(tmp_path: Path) -> None:
    request = repositories.pull_request(tmp_path / "origin", {"a.txt": "1\n"}, {"a.txt": "2\n"})
    request.checkout(tmp_path / "repository" / "under", request.merge)
    (folder,) = entered(tmp_path, "repo: ./under")
    assert content(folder) == "2\n"


def test_checkout__is_complete_and_on_its_own(tmp_path: Path) -> None:
    made = origin(tmp_path / "repository" / "origin")
    (folder,) = entered(tmp_path, "repo: ./origin, commit: first")
    app = repositories.Repository(folder.path / "app")
    assert app.git("status", "--porcelain") == ""
    assert app.git("rev-parse", "--abbrev-ref", "HEAD") == "HEAD"
    assert app.git("rev-list", "--count", "origin/topic") == "4"
    assert app.git("remote", "get-url", "origin") == str(made.path.resolve())
    assert not (app.path / ".git" / "objects" / "info" / "alternates").exists()
    assert all(
        file.stat().st_nlink == 1
        for file in (app.path / ".git" / "objects").rglob("*")
        if file.is_file()
    )


def test_checkout__runs_no_hook_and_has_no_credentials(tmp_path: Path) -> None:
    made = origin(tmp_path / "repository" / "origin")
    made.git("config", "http.extraheader", "AUTHORIZATION: basic aHVudGVyMg==")
    hook = made.path / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    (folder,) = entered(tmp_path, "repo: ./origin")
    assert "AUTHORIZATION" not in (folder.path / "app" / ".git" / "config").read_text()
    assert not (folder.path / "app" / ".git" / "hooks").exists()
    assert not (tmp_path / "ran").exists()


def test_copies__are_fetched_once_and_apart(tmp_path: Path) -> None:
    with git_http.served(origin(tmp_path / "elsewhere")) as url:
        fields = f"repo: '{url}', commit: topic~2"
        folders = entered(tmp_path, fields, count=3, isolation="per_test")
    assert len({folder.path for folder in folders}) == 3
    assert {content(folder) for folder in folders} == {"2\n"}
    assert len(list(folders[0].path.parents[2].glob("repositories/*"))) == 1


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("repo: ./origin, commit: nowhere", "has no commit `nowhere`"),
        (
            "repo: 'http://127.0.0.1:9/no/such'",
            "the repository http://127.0.0.1:9/no/such could not be cloned",
        ),
        ("repo: /", "could not be cloned"),
    ],
)
def test_refused__what_cannot_be_obtained(tmp_path: Path, fields: str, expected: str) -> None:
    origin(tmp_path / "repository" / "origin")
    with pytest.raises(AttemptError, match=expected) as caught:
        entered(tmp_path, fields)
    assert caught.value.kind == "workspace"


@pytest.mark.parametrize("path", ["taken", "link/app"])
def test_refused__a_path_that_is_taken_or_leads_out(tmp_path: Path, path: str) -> None:
    origin(tmp_path / "repository" / "origin")
    files: dict[str, str | bytes] = {"start/taken/x": "x"}
    root = workspaces.suite(
        tmp_path / "repository",
        f"  template: start\n  repos: [{{path: {path}, repo: ./origin}}]",
        files,
    )
    job = workspaces.run(root, tmp_path / "scratch")
    (root / "start" / "link").symlink_to(tmp_path)
    with pytest.raises(AttemptError, match=r"there is something at|leads out of"):
        asyncio.run(job.enter())
