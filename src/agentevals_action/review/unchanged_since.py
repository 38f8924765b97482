"""Pure: whether what changed between an earlier commit and the base leaves a suite alone, by
discovery, so that old results still hold."""

from collections.abc import Callable, Mapping, Sequence

from agentevals_action.model.comparison import ChangedFile
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.model.watch import WatchRule
from agentevals_action.review import selection as discover

#: What changed from a commit to the base, or in words why it cannot be told.
Changes = Callable[[str], Sequence[ChangedFile] | str]
#: Those paths that are symbolic links in the base's tree, with where they lead.
Links = Callable[[Sequence[str]], Mapping[str, Sequence[str]]]


class Untouched:
    """Asked with an ancestor's SHA and the path of a suite of the base: True, or why not, in words.
    What changed is asked once for each ancestor. `suites` are the base's by path."""

    def __init__(
        self,
        suites: Mapping[str, Suite | BrokenSuite],
        watch: Sequence[WatchRule],
        changes: Changes,
        links: Links,
    ) -> None:
        self._suites = suites
        self._watch = watch
        self._changes = changes
        self._links = links
        self._known: dict[str, discover.Change | str] = {}

    def __call__(self, ancestor: str, path: str) -> bool | str:
        """Whether the change from there to the base leaves the suite as it was."""
        suite = self._suites.get(path)
        if suite is None:
            return "the base has no such suite"
        change = self._change(ancestor)
        if isinstance(change, str):
            return change
        found = discover.select_suites((suite,), change, self._watch)
        reasons = [reason for selection in found.selections for reason in selection.reasons]
        if reasons or found.touched_broken:
            return f"the base has changed it since ({reasons[0] if reasons else 'the suite is broken'})"
        return True

    def _change(self, ancestor: str) -> discover.Change | str:
        if ancestor not in self._known:
            files = self._changes(ancestor)
            self._known[ancestor] = files if isinstance(files, str) else self._of(files)
        return self._known[ancestor]

    def _of(self, files: Sequence[ChangedFile]) -> discover.Change:
        # The earlier tree is not looked at: what its suite named and the base's does not, it named
        # in a file that has changed since.
        paths = [path for file in files for path in (file.path, file.previous_path) if path]
        return discover.Change(tuple(files), links=self._links(paths))
