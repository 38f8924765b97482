"""The source of base's results: the one that the input `baseline` names, or all in their order."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agentevals_action.baselines.auto import AutoBaseline
from agentevals_action.baselines.base import Baseline, BaseTree, Freshness, NoBaseline
from agentevals_action.baselines.rerun import RerunBaseline
from agentevals_action.baselines.stored import StoredBaseline
from agentevals_action.errors import GitError
from agentevals_action.model.baseline import BaselineInfo, StoredRun
from agentevals_action.results.jsonl import parse_results
from agentevals_action.review.inputs import ReviewInputs
from agentevals_action.review.run_sides import Sides

#: Bytes of a baseline file, at most.
_FILE_BYTES = 64 * 1024 * 1024


async def find_baseline(inputs: ReviewInputs, sides: Sides) -> Baseline:
    """The source of base's results. Stored results of the suites that run are read now, before a
    program of the change starts."""
    settings, base = inputs.request.settings, inputs.base
    name = settings.baseline
    info = BaselineInfo(name, wanted=True, commit=base.sha, commit_time=base.time)
    if name == "none":
        return NoBaseline(replace(info, wanted=False, reason="`baseline` is `none`"))
    if base.sha is None or base.root is None:
        wanted, reason = bool(base.problem), base.reason
        return NoBaseline(BaselineInfo(name, wanted=wanted, reason=reason, problem=base.problem))
    fingerprints = inputs.engine.fingerprints
    suites = {suite.path: suite for suite in base.suites}
    tree = BaseTree(info, suites, fingerprints.with_rules(base.watch).of, fingerprints.of)
    sources = _Sources(inputs, base.sha, base.root, tree, sides)
    found = [(each, await sources.open(each)) for each in sources.names]
    return AutoBaseline(info, found) if name == "auto" else found[0][1]


class _Sources:
    """The sources that the input `baseline` names, in their order."""

    def __init__(
        self, inputs: ReviewInputs, commit: str, root: Path, tree: BaseTree, sides: Sides
    ) -> None:
        self._settings, self._repository = inputs.request.settings, inputs.request.repository
        self._data_branch, self._part = inputs.request.data_branch, inputs.part
        self._commit, self._root, self._tree, self._sides = commit, root, tree, sides

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sources."""
        if self._settings.baseline != "auto":
            return (self._settings.baseline,)
        return ("branch", *(["file"] if self._settings.baseline_file else []), "rerun")

    async def open(self, name: str) -> Baseline:
        """The source with this name."""
        if name == "rerun":
            sides, info = self._sides, replace(self._tree.info, source=name)
            parts = {suite.path: suite for suite in self._part.base.values()}
            suites = {**self._tree.suites, **parts}
            return RerunBaseline(info, self._root, sides.prepare_base, sides.run_base, suites)
        read = self._read_branch if name == "branch" else self._read_file
        runs, problem = await read()
        at = self._settings.baseline_branch if name == "branch" else self._settings.baseline_file
        return StoredBaseline(
            name,
            f"`{at}`" if name == "branch" else f"`{at}` on base",
            self._tree,
            Freshness(datetime.now(UTC), self._settings.baseline_max_age),
            runs,
            problem,
            lambda commit: self._repository.is_ancestor(commit, self._commit),
        )

    async def _read_branch(self) -> tuple[tuple[StoredRun, ...], str]:
        """The runs of the data branch, and a problem with them."""
        branch = self._data_branch
        if branch is None:
            return (), "`baseline: branch` needs GitHub, and this run is local"
        try:
            files = await branch.read()
        except GitError as error:
            return (), f"`{branch.name}` could not be read: {error.sentence}"
        if files is None:
            return (), (
                f"there is no branch `{branch.name}` yet: runs on the default branch with "
                "`contents: write` write it"
            )
        problems: list[str] = []
        paths = {suite.path for suite in self._part.base.values()}
        found = await asyncio.to_thread(list, files.runs(problems, paths))
        return tuple(run for _, run in found), "; ".join(problems)

    async def _read_file(self) -> tuple[tuple[StoredRun, ...], str]:
        """The run in the baseline file of base's commit, and the reason if there is none."""
        path = self._settings.baseline_file or ""
        content = await self._repository.show(self._commit, path)
        if content is None:
            return (), f"there is no `{path}` on base (a baseline file counts once it is merged)"
        if len(content) > _FILE_BYTES:
            return (), f"`{path}` on base is larger than {_FILE_BYTES >> 20} MiB"
        try:
            return (StoredRun(await asyncio.to_thread(parse_results, content)),), ""
        except ValueError as error:
            return (), f"`{path}` on base is not a results file: {error}"
