"""`history`: the page from the data branch of the origin, or of the clone."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support import command
from tests.support.repositories import Repository
from tests.support.trends import BRANCH, store


@pytest.fixture
def origin(tmp_path: Path) -> Repository:
    """A repository whose data branch has two runs."""
    repository = Repository.create(tmp_path / "origin", {"code.py": "pass\n"})
    store(repository, 2)
    return repository


def clone(origin: Repository, folder: Path, *options: str) -> Repository:
    origin.git("clone", "--quiet", *options, origin.path.as_uri(), str(folder))
    return Repository(folder)


def runs_of(page: Path) -> list[int]:
    found = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return [len(suite["points"]) for suite in data["suites"]]


@pytest.mark.parametrize("options", [(), ("--depth=1", "--single-branch"), ("--filter=blob:none",)])
def test_history__is_that_of_origin_now(
    tmp_path: Path, origin: Repository, options: tuple[str, ...]
) -> None:
    origin.git("config", "uploadpack.allowFilter", "true")
    origin.git("config", "uploadpack.allowAnySHA1InWant", "true")
    cloned = clone(origin, tmp_path / "clone", *options)
    store(origin, 3)
    done = command.run(cloned.path, "history")
    assert (done.code, done.out, done.err) == (0, "history: history.html\n", "")
    assert runs_of(cloned.path / "history.html") == [3]
    assert cloned.git("status", "--porcelain") == "?? history.html"


def test_history__without_origin_is_that_of_the_clone(origin: Repository) -> None:
    done = command.run(origin.path, "history", "-o", "out/page.html")
    assert done.code == 0, done.err
    assert done.err.startswith("notice: the branch of the clone is used: ")
    assert runs_of(origin.path / "out" / "page.html") == [2]


def test_history__of_a_branch_without_trends_is_made_of_the_samples(origin: Repository) -> None:
    origin.git("checkout", "--quiet", BRANCH)
    origin.git("rm", "--quiet", "trends.json")
    origin.git("commit", "--quiet", "--message", "as an earlier version wrote it")
    origin.git("checkout", "--quiet", "main")
    assert command.run(origin.path, "history").code == 0
    assert runs_of(origin.path / "history.html") == [2]


def test_history__without_a_branch_names_what_writes_it(origin: Repository, tmp_path: Path) -> None:
    cloned = clone(origin, tmp_path / "clone")
    done = command.run(cloned.path, "history", "--baseline-branch", "other")
    assert done.code == 2
    assert "there is no branch `other`" in done.err
    assert "with `contents: write`" in done.err
    done = command.run(cloned.path, "history", "--baseline-branch", "main")
    assert done.code == 2
    assert "`main` has no results of a suite" in done.err
    assert not (cloned.path / "history.html").exists()


def test_history__opens_the_page(origin: Repository, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = f"sh -c 'printf %s \"$1\" > {opened}' sh %s"
    done = command.run(origin.path, "history", "--open", env={"BROWSER": browser})
    assert done.code == 0, done.err
    assert opened.read_text() == (origin.path / "history.html").as_uri()
