"""Results that the repository itself keeps (`baseline-file`), as the base's tree has them: a change
cannot bring its own baseline."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from agentevals_action.baselines import baseline_file_format
from agentevals_action.baselines.base import BaseTree, Freshness, origin, sorted_out
from agentevals_action.baselines.stored_run import whole_run
from agentevals_action.model.comparison import BaseRun, Origin, Selection
from agentevals_action.model.result import SuiteRun

_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class FileStore:
    """The file at `path` (relative to the repository's root) in the base's tree, which lies at
    `root`. Its results count where their digests are those of the base's tests, whatever commit
    they are of; which one that is, is told."""

    tree: BaseTree
    freshness: Freshness
    root: Path
    path: str

    reruns: ClassVar[bool] = False

    async def results(self, selections: Sequence[Selection]) -> BaseRun:
        """Results by the suite's path on head."""
        return await asyncio.to_thread(self._results, selections)

    def _results(self, selections: Sequence[Selection]) -> BaseRun:
        info = replace(self.tree.info, source="file")
        found = sorted_out(self.tree.suites, selections)
        stored = self._stored() if found.wanted else {}
        if isinstance(stored, str):
            return BaseRun(
                info, missing=found.missing, problems=dict.fromkeys(found.wanted, stored)
            )
        runs: dict[str, SuiteRun] = {}
        origins: dict[str, Origin] = {}
        problems: dict[str, str] = {}
        for path, suite in found.wanted.items():
            there = stored.get(suite.path)
            whole = (
                whole_run(suite, there.results, self.tree.expected(suite))
                if there
                else "there are no results of it"
            )
            if isinstance(whole, str) or there is None:
                problems[path] = f"`{self.path}` on base: {whole}"
                continue
            runs[path] = whole
            distance = 0 if there.commit == info.commit else None
            origins[path] = origin("file", whole, there.commit or None, distance, self.freshness)
        return BaseRun(info, runs, found.missing, problems, origins)

    def _stored(self) -> dict[str, baseline_file_format.StoredSuite] | str:
        """The suites of the file; in words why it is none."""
        root, place = self.root.resolve(), (self.root / self.path).resolve()
        if not place.is_relative_to(root):
            return f"`{self.path}` leads out of the repository"
        if not place.is_file():
            return f"there is no `{self.path}` on base (a baseline file counts once it is merged)"
        try:
            if place.stat().st_size > _BYTES:
                return f"`{self.path}` on base is larger than {_BYTES >> 20} MiB"
            return {
                suite.path: suite
                for suite in baseline_file_format.read(place.read_bytes().decode("utf-8"))
            }
        except OSError as error:
            return f"`{self.path}` on base cannot be read: {error.strerror}"
        except ValueError as error:  # no UTF-8, or no baseline file
            return f"`{self.path}` on base is no baseline file: {error}"
