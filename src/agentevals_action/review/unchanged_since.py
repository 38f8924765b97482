"""Whether a suite is unchanged between an earlier commit and the base, so that stored results are
still valid."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from agentevals_action.model.path_patterns import WatchRule
from agentevals_action.model.review import ChangedFile
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.review.selection import Change, select_suites

#: The changes from a commit to the base, or the reason why they are unknown.
Changes = Callable[[str], Sequence[ChangedFile] | str]
#: The change of these files, with what the base's tree shows about their paths.
Describe = Callable[[Sequence[ChangedFile]], Change]


class ChangedSince:
    """The reason why results of an ancestor (SHA) do not hold for the suite at a path, or empty.
    `suites` are those of base, by path."""

    def __init__(
        self,
        suites: Mapping[str, Suite | BrokenSuite],
        watch: Sequence[WatchRule],
        changes: Changes,
        describe: Describe,
    ) -> None:
        self._suites, self._watch = suites, watch
        self._changes, self._describe = changes, describe
        self._change = cache(self._find_change)

    def __call__(self, ancestor: str, path: str) -> str:
        """The reason for one ancestor and one suite."""
        suite = self._suites.get(path)
        if suite is None:
            return "the base has no such suite"
        change = self._change(ancestor)
        if isinstance(change, str):
            return change
        found = select_suites((suite,), change, self._watch)
        if not found.selections and not found.broken:
            return ""
        reasons = [reason for selection in found.selections for reason in selection.reasons]
        return f"the base has changed it since ({reasons[0] if reasons else 'the suite is broken'})"

    def _find_change(self, ancestor: str) -> Change | str:
        files = self._changes(ancestor)
        if isinstance(files, str):
            return files
        # The suite at the ancestor is not read: if it referenced another file, it has changed.
        return self._describe(tuple(files))
