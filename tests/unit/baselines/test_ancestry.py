"""Where the base's ancestors, and what changed since, are asked for."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from agentevals_action.baselines.ancestry import Ancestry, GitHistory
from agentevals_action.baselines.base import MOST_BACK, Lineage, build_lineage
from agentevals_action.errors import HostError
from agentevals_action.model.changed_file import ChangedFile
from agentevals_action.system.git import GitRepository
from tests.support.repositories import Repository, pull_request

T = TypeVar("T")
FILE = (ChangedFile("a", "modified"),)


@dataclass
class Place:
    """Knows what it is given; without `lines` it cannot be asked."""

    lines: Lineage | None = None
    files: Sequence[ChangedFile] | str | None = FILE
    asked: list[str] = field(default_factory=list)

    def lineage(self, commit: str) -> Lineage:
        self.asked.append(commit)
        if self.lines is None:
            raise HostError("forbidden")
        return self.lines

    def changes(self, ancestor: str, commit: str) -> Sequence[ChangedFile] | str:
        self.asked.append(ancestor)
        if self.files is None:
            raise HostError("down")
        return self.files


def test_lineage__is_by_the_fewest_steps_over_all_parents() -> None:
    parents = {
        "top": ("main", "side1"),
        "side1": ("side2",),
        "side2": ("old",),
        "main": ("old",),
        "old": ("older",),
    }
    assert list(build_lineage("top", parents).distances.items()) == [
        ("top", 0),
        ("main", 1),
        ("side1", 1),
        ("old", 2),
        ("side2", 2),
        ("older", 3),
    ]


def test_lineage__ends_where_a_baseline_is_too_far() -> None:
    parents = {str(number): (str(number + 1),) for number in range(200)}
    assert list(build_lineage("0", parents).distances.values()) == list(range(MOST_BACK + 1))


def test_lineage__the_first_that_knows_all_is_enough() -> None:
    near, far = Place(Lineage({"x": 0, "y": 1})), Place()
    ancestry = Ancestry("x", (near, far))
    assert ancestry.lineage.distances == ancestry.lineage.distances == {"x": 0, "y": 1}
    assert (near.asked, far.asked) == (["x"], [])


def test_lineage__the_one_that_knows_most_and_what_each_lacks() -> None:
    found = Ancestry("x", (Place(Lineage({"x": 0, "y": 1}, "shallow")), Place())).lineage
    assert (found.distances, found.problem) == ({"x": 0, "y": 1}, "shallow; forbidden")
    assert Ancestry("x", ()).lineage == Lineage({"x": 0}, "no source knows the base's ancestors")


def test_changes__of_the_next_place_where_the_first_cannot_tell() -> None:
    assert Ancestry("x", (Place(files="not in the clone"), Place())).changes("y") == FILE
    assert (
        Ancestry("x", (Place(files="not in the clone"), Place(files="too much"))).changes("y")
        == "too much"
    )
    assert Ancestry("x", ()).changes("y") == "no source knows the changes since then"


def test_changes__a_place_that_failed_is_not_asked_again() -> None:
    place = Place(files=None)
    ancestry = Ancestry("x", (place,))
    assert [ancestry.changes("y"), ancestry.changes("z")] == ["down", "down"]
    assert place.asked == ["y"]


def test_changes__are_bounded() -> None:
    place = Place()
    ancestry = Ancestry("x", (place,))
    told = [ancestry.changes(str(number)) for number in range(40)]
    assert told.count(FILE) == len(place.asked) == 30
    assert told[-1] == "the changes since more than 30 commits would be needed"


def in_git(folder: Path, ask: Callable[[GitHistory], T]) -> T:
    """What a thread learns from the history of a clone."""

    async def asked() -> T:
        return await asyncio.to_thread(ask, GitHistory(GitRepository(folder)))

    return asyncio.run(asked())


def test_git_past__of_a_whole_clone(tmp_path: Path) -> None:
    made = pull_request(tmp_path / "origin", {"a": "1"}, {"a": "2"}, {"b": "1"})
    folder = made.origin.path
    assert in_git(folder, lambda past: past.lineage(made.merge)) == Lineage(
        {made.merge: 0, made.main: 1, made.head: 1, made.base: 2}
    )
    assert in_git(folder, lambda past: past.changes(made.base, made.merge)) == (
        ChangedFile("a", "modified"),
        ChangedFile("b", "added"),
    )
    unknown = in_git(folder, lambda past: past.changes("0" * 40, made.merge))
    assert unknown == "the commit 000000000000 is not in the clone"


def test_git_past__of_a_shallow_clone(tmp_path: Path) -> None:
    made = pull_request(tmp_path / "origin", {"a": "1"}, {"a": "2"})
    folder = made.checkout(tmp_path / "workspace", made.merge).path
    assert in_git(folder, lambda past: past.lineage(made.merge)) == Lineage(
        {made.merge: 0}, "the clone does not contain the complete history"
    )
    assert "is not in the clone" in str(
        in_git(folder, lambda past: past.changes(made.base, made.merge))
    )


def test_git_past__of_no_repository(tmp_path: Path) -> None:
    Repository.create(tmp_path / "made", {"a": "1"})
    lineage = in_git(tmp_path / "made", lambda past: Ancestry("0" * 40, (past,)).lineage)
    assert lineage.distances == {"0" * 40: 0}
    assert lineage.problem.startswith("`git rev-list` failed")


@pytest.mark.parametrize("commit", ["x", "0" * 40])
def test_lineage__of_a_commit_that_nobody_knows(commit: str) -> None:
    assert build_lineage(commit, {}).distances == {commit: 0}
