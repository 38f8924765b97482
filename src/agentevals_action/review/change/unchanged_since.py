"""Whether a suite is unchanged between an earlier commit and the base, so that stored results are
still valid."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from agentevals_action.model.changed_file import ChangedFile
from agentevals_action.model.path_patterns import WatchRule
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.review.change.selection import Change, select_suites

#: The changes from a commit to the base, or the reason why they are unknown.
Changes = Callable[[str], Sequence[ChangedFile] | str]
#: The change of these files, with what the base's tree shows about their paths.
Describe = Callable[[Sequence[ChangedFile]], Change]


def changed_since(
    suites: Mapping[str, Suite | BrokenSuite],
    watch: Sequence[WatchRule],
    changes: Changes,
    describe: Describe,
) -> Callable[[str, str], str]:
    """Gives the reason why results of an ancestor (SHA) do not hold for the suite at a path, or an
    empty text. `suites` are those of base, by path."""

    @cache
    def change_since(ancestor: str) -> Change | str:
        # The suite at the ancestor is not read: if it referenced another file, it has changed.
        files = changes(ancestor)
        return files if isinstance(files, str) else describe(tuple(files))

    def reason(ancestor: str, path: str) -> str:
        suite = suites.get(path)
        if suite is None:
            return "the base has no such suite"
        change = change_since(ancestor)
        if isinstance(change, str):
            return change
        found = select_suites((suite,), change, watch)
        if found.is_empty:
            return ""
        reasons = [reason for selection in found.selections for reason in selection.reasons]
        return f"the base has changed it since ({reasons[0] if reasons else 'the suite is broken'})"

    return reason
