"""The source of base's results: the one that the input `baseline` names, or all in their order."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from agentevals_action.baselines.ancestry import Ancestry, GitHistory
from agentevals_action.baselines.auto import AutoBaseline
from agentevals_action.baselines.base import Baseline, BaseTree, Freshness, NoBaseline
from agentevals_action.baselines.branch import BranchBaseline
from agentevals_action.baselines.file import FileBaseline
from agentevals_action.baselines.rerun import RerunBaseline
from agentevals_action.github.host import GitHubHost
from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.changed_file import ChangedFile
from agentevals_action.review.change.base_tree import Base
from agentevals_action.review.change.changed_files import describe_change, imported_by_judges
from agentevals_action.review.change.selection import Change
from agentevals_action.review.change.unchanged_since import changed_since
from agentevals_action.review.run_sides import Sides
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository

#: Gives the source to use for the source of this name.
Around = Callable[[str, Baseline], Baseline]

_NO_HOST = "there is no code host to ask here"


async def find_baseline(
    settings: Settings,
    base: Base,
    sides: Sides,
    repository: GitRepository,
    github: GitHubHost | None,
    around: Around | None = None,
) -> Baseline:
    """The source of base's results. Without `github` there are no stores on a host. `around` may
    replace a source."""
    name = settings.baseline
    info = BaselineInfo(name, wanted=True, commit=base.sha, commit_time=base.time)
    if name == "none":
        return NoBaseline(replace(info, wanted=False, reason="`baseline` is `none`"))
    if base.sha is None or base.root is None:
        wanted, reason = bool(base.problem), base.reason
        return NoBaseline(BaselineInfo(name, wanted=wanted, reason=reason, problem=base.problem))
    fingerprint = sides.engine.fingerprints.of
    suites = {suite.path: suite for suite in base.suites}
    tree = BaseTree(
        info, suites, lambda suite: {test.id: fingerprint(suite, test) for test in suite.tests}
    )
    sources = await _sources(settings, tree, base.root, sides, repository, github)
    names = [name for name in sources if name != "file" or settings.baseline_file]
    used = names if name == "auto" else [name]
    found = [(one, await sources[one]()) for one in used]
    if around:
        found = [(one, around(one, source)) for one, source in found]
    return AutoBaseline(info, found) if name == "auto" else found[0][1]


async def _sources(
    settings: Settings,
    tree: BaseTree,
    root: Path,
    sides: Sides,
    repository: GitRepository,
    github: GitHubHost | None,
) -> dict[str, Callable[[], Awaitable[Baseline]]]:
    """The sources by name, in the order in which `auto` uses them."""
    info, branch = tree.info, settings.baseline_branch
    ancestry = Ancestry(info.commit or "", (GitHistory(repository),))
    rules = settings.watch_rules
    links: Sequence[str] = ()
    if rules and info.commit:
        links, _ = await repository.links_and_submodules(info.commit)
    imported = cache(lambda: imported_by_judges(tree.suites.values()))

    def describe(files: Sequence[ChangedFile]) -> Change:
        return replace(describe_change(files, (root,), links), imported=imported())

    changed = changed_since(tree.suites, rules, ancestry.changes, describe)
    fresh = Freshness(datetime.now(UTC), settings.baseline_max_age)

    async def from_branch() -> Baseline:
        if github is None:
            return NoBaseline(replace(info, source="branch", problem=_NO_HOST))
        memory = github.data_branch(branch)
        return BranchBaseline(tree, fresh, memory, branch, ancestry, changed)

    async def from_rerun() -> Baseline:
        rerun = replace(info, source="rerun")
        return RerunBaseline(rerun, root, sides.prepare_base, sides.run_base, tree.suites)

    async def from_file() -> Baseline:
        path = settings.baseline_file or ""
        return FileBaseline(tree, fresh, await repository.show(info.commit or "HEAD", path), path)

    return {
        "branch": from_branch,
        "file": from_file,
        "rerun": from_rerun,
    }
