"""What lies before the base: its ancestors, earlier runs on its branch, and what those left."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: Commits that a baseline may lie before the base, at most.
MOST_BACK = 50


@dataclass(frozen=True)
class Lineage:
    """A commit and those before it: `distances` are the fewest steps back by SHA, nearest first,
    the commit itself 0. `problem` says why not all of them are known."""

    distances: Mapping[str, int]
    problem: str = ""


def lineage(commit: str, parents: Mapping[str, Sequence[str]], problem: str = "") -> Lineage:
    """The ancestors of a commit over all its parents, at most `MOST_BACK` back; `parents` may know
    of more commits, or of fewer."""
    distances = {commit: 0}
    waiting = deque([commit])
    while waiting:
        current = waiting.popleft()
        if distances[current] == MOST_BACK:
            continue
        for parent in parents.get(current, ()):
            if parent not in distances:
                distances[parent] = distances[current] + 1
                waiting.append(parent)
    return Lineage(distances, problem)


@dataclass(frozen=True)
class PastRun:
    """A run of the workflow that succeeded, on which commit, and its page."""

    id: int
    commit: str
    url: str = ""


@dataclass(frozen=True)
class Archive:
    """A file that a run left: a ZIP, or in words why it could not be had."""

    name: str
    content: bytes = b""
    problem: str = ""
