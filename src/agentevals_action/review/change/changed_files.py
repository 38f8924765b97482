"""The change between base and head: the files that git lists, and what both sides know about
them."""

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agentevals_action.execution.edits import imported_files
from agentevals_action.github.events import Job
from agentevals_action.model.files import NamedFile
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.review.change.base_tree import Base
from agentevals_action.review.change.selection import Change, describe_removed, useless_rules
from agentevals_action.settings import Settings
from agentevals_action.suites.checkout import Checkout
from agentevals_action.system.git import ChangedFile, GitRepository


async def find_change(
    repository: GitRepository | None,
    job: Job,
    head_sha: str,
    base: Base,
    checkout: Checkout,
    suites: Sequence[Suite | BrokenSuite],
    settings: Settings,
) -> tuple[Change, tuple[str, ...]]:
    """The changed files with what base knows about them (a file that only base's suites reference
    affects them, too), and notices about rules of `watch` that are removed or match nothing.
    `checkout` and `suites` are those of head. Without a base, the files are unknown."""
    files = None
    if repository and base.sha is not None:
        files = await repository.changed_files(base.sha, None if job.event == "local" else head_sha)
    # The imports of judges are read from the disk.
    return await asyncio.to_thread(_describe, files, job, base, checkout, suites, settings)


def _describe(
    files: Sequence[ChangedFile] | None,
    job: Job,
    base: Base,
    checkout: Checkout,
    suites: Sequence[Suite | BrokenSuite],
    settings: Settings,
) -> tuple[Change, tuple[str, ...]]:
    rules = settings.watch_rules
    renamed = {file.paths[1]: file.path for file in files or () if len(file.paths) > 1}
    base_suites = tuple(suite.path for suite in base.suites)
    on_base = imported_by_judges(base.suites) if files else {}
    imported = imported_by_judges(suites) if files else {}
    change = Change(
        files,
        everything=job.select == "all",
        base_suites=base_suites,
        base_files={
            renamed.get(suite.path, suite.path): (*on_base.get(suite.path, ()), *suite.files)
            for suite in base.suites
        },
        base_watch=base.watch,
        imported=_with_replies(imported, files or (), settings),
        links=linked_files(files or (), [checkout.root, *([base.root] if base.root else [])]),
    )
    known = (*(suite.path for suite in suites), *base_suites)
    removed = describe_removed(rules, base.watch)
    useless = useless_rules(rules, checkout.files or (), change, known)
    return change, (*filter(None, [removed]), *useless)


def linked_files(
    files: Sequence[ChangedFile], roots: Sequence[Path]
) -> Mapping[str, Sequence[str]]:
    """The files that changed symbolic links lead to in the trees, by the link's path."""
    found: dict[str, list[str]] = {}
    for path in (path for file in files for path in file.paths):
        for root in roots:
            if (root / path).is_symlink():
                target = Path(os.path.realpath(root / path))  # a circle of links ends in itself
                if target.is_relative_to(root):
                    found.setdefault(path, []).append(target.relative_to(root).as_posix())
    return found


def imported_by_judges(suites: Iterable[Suite | BrokenSuite]) -> Mapping[str, Sequence[NamedFile]]:
    """The files that judges import, by the path of the suite: a change of one affects the suite."""
    return {suite.path: imported_files(suite) for suite in suites if isinstance(suite, Suite)}


def _with_replies(
    imported: Mapping[str, Sequence[NamedFile]],
    files: Sequence[ChangedFile],
    settings: Settings,
) -> Mapping[str, Sequence[NamedFile]]:
    """The files of each suite with the stored replies that the change edits, if these answer."""
    if settings.cache != "replay":
        return imported
    paths = (path for file in files for path in file.paths)
    folder = f"{settings.cache_dir}/"
    replies = [NamedFile(path, "stored reply") for path in paths if path.startswith(folder)]
    return {suite: (*found, *replies) for suite, found in imported.items()}
