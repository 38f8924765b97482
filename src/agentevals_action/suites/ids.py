"""Which ids of a suite are given twice, in eight bytes a test: a set of them would grow with the
file."""

from array import array
from itertools import pairwise


class Ids:
    """The ids seen so far, by their hashes."""

    def __init__(self) -> None:
        self._hashes = array("q")

    def __len__(self) -> int:
        return len(self._hashes)

    def add(self, name: str) -> None:
        """Notes one more id."""
        self._hashes.append(hash(name))

    def doubtful(self) -> frozenset[int]:
        """The hashes that several ids have: the same id twice, or, hardly ever, two ids that only
        look alike."""
        ordered = sorted(self._hashes)
        return frozenset(one for one, other in pairwise(ordered) if one == other)
