"""Results in a file of the repository (`baseline-file`), as base's commit has it: a change cannot
bring its own baseline, and no program can change it during the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from agentevals_action.baselines.base import Found, StoredBaseline
from agentevals_action.model.result import TestResult
from agentevals_action.model.suite import Suite
from agentevals_action.results.jsonl import parse_results

_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class FileBaseline(StoredBaseline):
    """The results file at `path` (relative to the repository) with this `content` at the base's
    commit, None if it is not there. Its results count if their fingerprints are those of the base's
    tests, whatever commit they are of."""

    source: ClassVar[str] = "file"

    content: bytes | None
    path: str

    def _find(self, suites: Mapping[str, Suite]) -> Mapping[str, Found]:
        rows = self._read()
        if isinstance(rows, str):
            return dict.fromkeys(suites, rows)
        return {path: self._results_of(suite, rows) for path, suite in suites.items()}

    def _results_of(self, suite: Suite, rows: Sequence[TestResult]) -> Found:
        results = [row for row in rows if row.eval_path == suite.path]
        found = self._complete(suite, results, None, None)
        return f"`{self.path}` on base: {found}" if isinstance(found, str) else found

    def _read(self) -> Sequence[TestResult] | str:
        """The rows of the file, or the reason why it cannot be used."""
        if self.content is None:
            return f"there is no `{self.path}` on base (a baseline file counts once it is merged)"
        if len(self.content) > _BYTES:
            return f"`{self.path}` on base is larger than {_BYTES >> 20} MiB"
        try:
            return parse_results(self.content)
        except ValueError as error:
            return f"`{self.path}` on base is not a results file: {error}"
