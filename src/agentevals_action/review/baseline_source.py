"""The source of base's results: the one that the input `baseline` names, or all in their order."""

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agentevals_action.baselines.auto import AutoBaseline
from agentevals_action.baselines.base import Baseline, BaseTree, Freshness, NoBaseline
from agentevals_action.baselines.data_branch import DataBranch
from agentevals_action.baselines.rerun import RerunBaseline
from agentevals_action.baselines.stored import StoredBaseline
from agentevals_action.errors import GitError
from agentevals_action.model.baseline import BaselineInfo, StoredRun
from agentevals_action.model.suite import Suite
from agentevals_action.results.jsonl import parse_results
from agentevals_action.review.change.base_tree import Base
from agentevals_action.review.run_sides import Sides
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository

#: Gives the source to use for the source of this name.
Around = Callable[[str, Baseline], Baseline]

#: Bytes of a baseline file, at most.
_FILE_BYTES = 64 * 1024 * 1024


async def find_baseline(
    settings: Settings,
    base: Base,
    selected: Iterable[Suite],
    sides: Sides,
    repository: GitRepository,
    data_branch: DataBranch | None,
    around: Around | None = None,
) -> Baseline:
    """The source of base's results. Stored results of the `selected` suites of base are read now,
    before a program of the change starts. `data_branch` is None in a local run. `around` may
    replace a source."""
    name = settings.baseline
    info = BaselineInfo(name, wanted=True, commit=base.sha, commit_time=base.time)
    if name == "none":
        return NoBaseline(replace(info, wanted=False, reason="`baseline` is `none`"))
    if base.sha is None or base.root is None:
        wanted, reason = bool(base.problem), base.reason
        return NoBaseline(BaselineInfo(name, wanted=wanted, reason=reason, problem=base.problem))
    fingerprints = sides.engine.fingerprints
    suites = {suite.path: suite for suite in base.suites}
    tree = BaseTree(info, suites, fingerprints.with_rules(base.watch).of, fingerprints.of)
    paths = frozenset(suite.path for suite in selected)
    sources = _Sources(settings, base.sha, base.root, tree, paths, sides, repository, data_branch)
    found = [(one, await sources.open(one)) for one in sources.names]
    if around:
        found = [(one, around(one, source)) for one, source in found]
    return AutoBaseline(info, found) if name == "auto" else found[0][1]


class _Sources:
    """The sources that the input `baseline` names, in their order."""

    def __init__(
        self,
        settings: Settings,
        commit: str,
        root: Path,
        tree: BaseTree,
        paths: Collection[str],
        sides: Sides,
        repository: GitRepository,
        data_branch: DataBranch | None,
    ) -> None:
        self._settings, self._commit, self._root, self._tree = settings, commit, root, tree
        self._paths = paths
        self._sides, self._repository, self._data_branch = sides, repository, data_branch

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
            return RerunBaseline(
                info, self._root, sides.prepare_base, sides.run_base, self._tree.suites
            )
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
        found = await asyncio.to_thread(list, files.runs(problems, self._paths))
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
