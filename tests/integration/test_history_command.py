"""`history`: the page from the data branch of the origin, or of the clone."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentevals_action.model.result import JudgeRecord
from tests.support import command, results
from tests.support.repositories import Repository
from tests.support.trends import store


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


def test_history__is_that_of_origin_now(tmp_path: Path, origin: Repository) -> None:
    cloned = clone(origin, tmp_path / "clone")
    before = cloned.snapshot()
    store(origin, 3)
    done = command.run(cloned.path, "history", "-o", "../page.html")
    assert (done.code, done.out, done.err) == (0, "history: ../page.html\n", "")
    assert runs_of(tmp_path / "page.html") == [3]
    assert cloned.snapshot() == before


def test_history__lists_the_judges_without_a_calibration(
    tmp_path: Path, origin: Repository
) -> None:
    judge = replace(results.evaluated("kind", 1.0), judge=JudgeRecord(key="a" * 64))
    row = results.result("a")
    sample = replace(row.samples[0], evaluator_results=(judge,))
    store(origin, 2, replace(row, samples=(sample,)))
    cloned, page = clone(origin, tmp_path / "clone"), tmp_path / "page.html"
    assert command.run(cloned.path, "history", "-o", "../page.html").code == 0
    assert "Judges without a calibration" in page.read_text(encoding="utf-8")
    assert "a: kind (" in page.read_text(encoding="utf-8")
    (cloned.path / "calibration.json").write_text("{}", encoding="utf-8")
    broken = command.run(cloned.path, "history", "-o", "../page.html")
    assert broken.code == 0
    assert "warning: calibration.json" in broken.err


def test_history__without_a_branch_names_what_writes_it(origin: Repository, tmp_path: Path) -> None:
    cloned = clone(origin, tmp_path / "clone")
    done = command.run(cloned.path, "history", "--baseline-branch", "other")
    assert done.code == 2
    assert "there is no branch `other`" in done.err
    assert "with `contents: write`" in done.err
    done = command.run(cloned.path, "history", "--baseline-branch", "main")
    assert done.code == 2
    assert "`main` contains something else than results" in done.err
    assert not (cloned.path / "history.html").exists()
