"""Results in a file of the repository (`baseline-file`), read from the base's tree: a change cannot
bring its own baseline."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from agentevals_action.baselines import baseline_file_format
from agentevals_action.baselines.base import Found, StoredBaseline, origin_of
from agentevals_action.baselines.stored_run import complete_run
from agentevals_action.model.suite import Suite
from agentevals_action.system.regular_files import is_present, read_regular

_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class FileBaseline(StoredBaseline):
    """The file at `path` (relative to the repository) in the base's tree at `root`. Its results
    count if their fingerprints are those of the base's tests, whatever commit they are of."""

    source: ClassVar[str] = "file"

    root: Path
    path: str

    def _find(self, suites: Mapping[str, Suite]) -> Mapping[str, Found]:
        stored = self._read()
        if isinstance(stored, str):
            return dict.fromkeys(suites, stored)
        return {path: self._of(suite, stored.get(suite.path)) for path, suite in suites.items()}

    def _of(self, suite: Suite, stored: baseline_file_format.StoredSuite | None) -> Found:
        results = stored.results if stored else ()
        run = complete_run(suite, results, self.tree.expected(suite))
        if isinstance(run, str) or stored is None:
            return f"`{self.path}` on base: {run}"
        distance = 0 if stored.commit == self.tree.info.commit else None
        return run, origin_of(self.source, run, stored.commit or None, distance, self.freshness)

    def _read(self) -> dict[str, baseline_file_format.StoredSuite] | str:
        """The suites of the file, or the reason why it cannot be used."""
        root, path = self.root.resolve(), (self.root / self.path).resolve()
        if not path.is_relative_to(root):
            return f"`{self.path}` is outside of the repository"
        if not is_present(path):
            return f"there is no `{self.path}` on base (a baseline file counts once it is merged)"
        try:
            data = read_regular(path, _BYTES + 1)
            if len(data) > _BYTES:
                return f"`{self.path}` on base is larger than {_BYTES >> 20} MiB"
            suites = baseline_file_format.read_suites(data.decode("utf-8"))
        except OSError as error:
            return f"`{self.path}` on base cannot be read: {error.strerror}"
        except ValueError as error:  # not UTF-8, or not a baseline file
            return f"`{self.path}` on base is not a valid baseline file: {error}"
        return {suite.path: suite for suite in suites}
