"""The change between base and head: the files that the host and git list, and what the trees show
about their paths."""

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from agentevals_action.errors import GitError
from agentevals_action.execution.definitions import imported_files
from agentevals_action.formatting import list_paths
from agentevals_action.github.base import Host
from agentevals_action.github.events import Job
from agentevals_action.model.changed_file import ChangedFile
from agentevals_action.model.suite import BrokenSuite, NamedFile, Suite
from agentevals_action.review.change.base_tree import Base
from agentevals_action.review.change.selection import Change, describe_removed, useless_rules
from agentevals_action.settings import Settings
from agentevals_action.suites.cassette_file import CassetteFolder
from agentevals_action.suites.checkout import Checkout
from agentevals_action.system.git import GitRepository


async def find_change(
    repository: GitRepository,
    host: Host,
    job: Job,
    head_sha: str,
    base: Base,
    checkout: Checkout,
    suites: Sequence[Suite | BrokenSuite],
    settings: Settings,
) -> tuple[Change, tuple[str, ...]]:
    """The changed files with what base knows about them (a file that only base's suites reference
    affects them, too), and notices: lists that differ, rules of `watch` that are removed or match
    nothing. `checkout` and `suites` are those of head."""
    files, notices = await _changed_files(repository, host, job, head_sha, base)
    rules = settings.watch_rules
    links, submodules = await repository.links_and_submodules(head_sha) if rules else ((), ())
    return await asyncio.to_thread(
        _describe,
        files,
        notices,
        links,
        submodules,
        repository.root,
        job,
        base,
        checkout,
        suites,
        settings,
    )


def _describe(
    files: Sequence[ChangedFile] | None,
    notices: Sequence[str],
    links: Sequence[str],
    submodules: Sequence[str],
    root: Path,
    job: Job,
    base: Base,
    checkout: Checkout,
    suites: Sequence[Suite | BrokenSuite],
    settings: Settings,
) -> tuple[Change, tuple[str, ...]]:
    rules = settings.watch_rules
    roots = (root, *((base.root,) if base.root else ()))
    renamed = {file.paths[1]: file.path for file in files or () if len(file.paths) > 1}
    base_suites = tuple(suite.path for suite in base.suites)
    on_base = imported_by_judges(base.suites) if files else {}
    change = replace(
        describe_change(files, roots, links),
        everything=job.select == "all",
        base_suites=base_suites,
        base_files={
            renamed.get(suite.path, suite.path): (*on_base.get(suite.path, ()), *suite.files)
            for suite in base.suites
        },
        base_watch=base.watch,
        imported=_with_cassettes(imported_by_judges(suites), files, settings, root)
        if files
        else {},
    )
    folders = (*submodules, *(link for link in links if (root / link).is_dir()))
    known = (*(suite.path for suite in suites), *base_suites)
    removed = describe_removed(rules, base.watch)
    useless = useless_rules(rules, checkout.files or (), folders, change, known)
    return change, (*notices, *filter(None, [removed]), *useless)


async def _changed_files(
    repository: GitRepository, host: Host, job: Job, head_sha: str, base: Base
) -> tuple[Sequence[ChangedFile] | None, tuple[str, ...]]:
    """The files that the host or git lists, None if neither can, and a notice if they differ: the
    host's list may be older than the push, and a list without the agent's file is a green check."""
    listed = await asyncio.to_thread(host.changed_files)
    if base.sha is None:
        return listed, ()
    try:
        until = None if job.event == "local" else head_sha
        compared = await repository.changed_files(base.sha, until)
    except GitError as error:
        if listed is None:
            raise
        problem = f"the changed files are those that the host lists, because {error.sentence}"
        return listed, (problem,)
    if listed is None:
        return compared, ()
    in_git, on_host = _all_paths(compared), _all_paths(listed)
    files = (*compared, *(file for file in listed if not in_git.issuperset(file.paths)))
    sides = (("git", in_git - on_host), ("the host", on_host - in_git))
    differences = [
        f"only {name} lists {list_paths(sorted(paths))}" for name, paths in sides if paths
    ]
    notice = f"the lists of changed files differ, and both count: {'; '.join(differences)}"
    return files, (notice,) if differences else ()


def _all_paths(files: Sequence[ChangedFile]) -> set[str]:
    return {path for file in files for path in file.paths}


def imported_by_judges(suites: Iterable[Suite | BrokenSuite]) -> Mapping[str, Sequence[NamedFile]]:
    """The files that judges import, by the path of the suite: a change of one affects the suite."""
    return {suite.path: imported_files(suite) for suite in suites if isinstance(suite, Suite)}


def _with_cassettes(
    imported: Mapping[str, Sequence[NamedFile]],
    files: Sequence[ChangedFile],
    settings: Settings,
    root: Path,
) -> Mapping[str, Sequence[NamedFile]]:
    """The files of each suite with its cassettes that the change edits, if cassettes answer."""
    if settings.cache != "replay" or settings.cassettes is None:
        return imported
    cassettes = CassetteFolder(root, settings.cassettes)
    changed = [PurePosixPath(path) for path in _all_paths(files)]
    return {
        suite: (
            *found,
            *(
                NamedFile(str(path), "cassette")
                for path in changed
                if path.parent == cassettes.folder_of(suite)
            ),
        )
        for suite, found in imported.items()
    }


def describe_change(
    files: Sequence[ChangedFile] | None, roots: Sequence[Path], links: Sequence[str] = ()
) -> Change:
    """A change with what the trees show about its paths: links, and files that git does not list.
    `links` are all symbolic links of the first tree, whose targets get their other names."""
    paths = [path for file in files or () for path in (file.path, file.previous_path) if path]
    targets = {
        path: [target for root in roots for target in _link_targets(root, path)] for path in paths
    }
    return Change(
        files,
        links={path: tuple(dict.fromkeys(found)) for path, found in targets.items() if found},
        folders=frozenset(path for path in paths if any((root / path).is_dir() for root in roots)),
        aliases=_aliases(paths, roots[0], links),
    )


def _aliases(paths: Sequence[str], root: Path, links: Sequence[str]) -> dict[str, tuple[str, ...]]:
    by_target: dict[str, list[str]] = {}
    for link in links:
        for target in _link_targets(root, link):
            by_target.setdefault(target, []).append(link)
    found: dict[str, tuple[str, ...]] = {}
    for path in paths if by_target else ():
        starts = [path, *(str(parent) for parent in PurePosixPath(path).parents)]
        names = (
            link + path.removeprefix(start) for start in starts for link in by_target.get(start, ())
        )
        if aliases := tuple(names):
            found[path] = aliases
    return found


def _link_targets(root: Path, path: str) -> Sequence[str]:
    """The target of a symbolic link in a tree, and that of the last link of a chain, as far as they
    are inside the tree, relative to it."""
    link = root / path
    try:
        if not link.is_symlink():
            return ()
        next_one = os.path.normpath(link.parent.resolve() / link.readlink())
        targets = [Path(next_one), link.resolve()]
    except (OSError, RuntimeError):  # a circle of links
        return ()
    inside = (target for target in targets if target.is_relative_to(root))
    return tuple(dict.fromkeys(target.relative_to(root).as_posix() for target in inside))
