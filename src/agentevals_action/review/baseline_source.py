"""The sources of the base's results, put together for one review: the one that is asked for, or the
ladder of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from agentevals_action.baselines.ancestry import Ancestry, GitHistory
from agentevals_action.baselines.artifact import ArtifactStore
from agentevals_action.baselines.auto import Auto
from agentevals_action.baselines.base import Baseline, BaseTree, Freshness
from agentevals_action.baselines.branch import BranchStore
from agentevals_action.baselines.file import FileStore
from agentevals_action.baselines.none import NoBaseline
from agentevals_action.baselines.rerun import Rerun
from agentevals_action.github.data_branch import DataBranch
from agentevals_action.github.history import GitHubHistory
from agentevals_action.github.host import GitHubHost
from agentevals_action.model.comparison import BaselineInfo
from agentevals_action.review import base_tree
from agentevals_action.review.unchanged_since import Untouched
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository

_NO_HOST = "there is no code host to ask here"


@dataclass(frozen=True)
class Places:
    """Where the history lies: the clone, and where there is one the code host. `branch` is the
    base's, empty for the default branch."""

    repository: GitRepository
    host: GitHubHost | None = None
    branch: str = ""

    @property
    def past(self) -> GitHubHistory | None:
        """What the code host knows of the history."""
        return self.host.history if self.host else None

    def memory(self, branch: str) -> DataBranch | None:
        """The results that are remembered on a branch of the repository."""
        return self.host.data_branch(branch) if self.host else None


def baseline_for(
    settings: Settings, tree: BaseTree, root: Path, rerun: Rerun, places: Places
) -> Baseline:
    """The source that `baseline` names, or with `auto` all of them in their order. `tree` and
    `root` are the base's."""
    by_name = _sources(settings, tree, root, rerun, places)
    if settings.baseline != "auto":
        return by_name[settings.baseline]()
    names = ("branch", "artifact", "rerun", *(("file",) if settings.baseline_file else ()))
    return Auto(tree.info, [(name, by_name[name]()) for name in names])


def _sources(
    settings: Settings, tree: BaseTree, root: Path, rerun: Rerun, places: Places
) -> Mapping[str, Callable[[], Baseline]]:
    commit = tree.info.commit or ""
    ancestry = Ancestry(
        commit, (GitHistory(places.repository), *((places.past,) if places.past else ()))
    )
    untouched = Untouched(
        tree.suites,
        settings.watch,
        ancestry.changes,
        lambda paths: base_tree.links_among(paths, (root,)),
    )
    freshness = Freshness(datetime.now(UTC), settings.baseline_max_age)

    def branch() -> Baseline:
        memory = places.memory(settings.baseline_branch)
        if memory is None:
            return NoBaseline(_without(tree, "branch"))
        return BranchStore(
            tree, freshness, memory, settings.baseline_branch, lambda: ancestry.lineage, untouched
        )

    def artifact() -> Baseline:
        if places.past is None:
            return NoBaseline(_without(tree, "artifact"))
        return ArtifactStore(
            tree, freshness, places.past, places.branch, lambda: ancestry.lineage, untouched
        )

    return {
        "branch": branch,
        "artifact": artifact,
        "rerun": lambda: rerun,
        "file": lambda: FileStore(tree, freshness, root, settings.baseline_file or ""),
    }


def _without(tree: BaseTree, source: str) -> BaselineInfo:
    return replace(tree.info, source=source, problem=_NO_HOST)
