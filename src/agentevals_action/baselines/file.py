"""Results in a file of the repository (`baseline-file`), as base's commit has it: a change cannot
bring its own baseline, and no program can change it during the run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from agentevals_action.baselines import baseline_file_format
from agentevals_action.baselines.base import Found, StoredBaseline
from agentevals_action.model.suite import Suite

_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class FileBaseline(StoredBaseline):
    """The file at `path` (relative to the repository) with this `content` at the base's commit,
    None if it is not there. Its results count if their fingerprints are those of the base's tests,
    whatever commit they are of."""

    source: ClassVar[str] = "file"

    content: bytes | None
    path: str

    def _find(self, suites: Mapping[str, Suite]) -> Mapping[str, Found]:
        stored = self._read()
        if isinstance(stored, str):
            return dict.fromkeys(suites, stored)
        return {path: self._of(suite, stored.get(suite.path)) for path, suite in suites.items()}

    def _of(self, suite: Suite, stored: baseline_file_format.StoredSuite | None) -> Found:
        results, commit = (stored.results, stored.commit) if stored else ((), "")
        distance = 0 if commit == self.tree.info.commit else None
        found = self._complete(suite, results, commit or None, distance)
        return f"`{self.path}` on base: {found}" if isinstance(found, str) else found

    def _read(self) -> dict[str, baseline_file_format.StoredSuite] | str:
        """The suites of the file, or the reason why it cannot be used."""
        if self.content is None:
            return f"there is no `{self.path}` on base (a baseline file counts once it is merged)"
        if len(self.content) > _BYTES:
            return f"`{self.path}` on base is larger than {_BYTES >> 20} MiB"
        try:
            suites = baseline_file_format.read_suites(self.content.decode("utf-8"))
        except ValueError as error:  # not UTF-8, or not a baseline file
            return f"`{self.path}` on base is not a valid baseline file: {error}"
        return {suite.path: suite for suite in suites}
