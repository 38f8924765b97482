"""The change between base and head: the files that git lists, and what both sides know about
them."""

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentevals_action.execution.suite_description import TrackedFiles
from agentevals_action.model.files import NamedFile
from agentevals_action.model.path_patterns import WatchRule, names_files
from agentevals_action.model.quarantine import FILE
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.review.base_tree import Base
from agentevals_action.review.known_files import KnownFiles, read_known_files, uncovered
from agentevals_action.review.selection import Change
from agentevals_action.settings import Settings
from agentevals_action.system.git import ChangedFile, GitRepository


@dataclass(frozen=True)
class HeadFiles:
    """The suites of head, the files of all its suites, also of those of other jobs, the paths that
    differ from its commit, and the path of the workflow that runs."""

    suites: Sequence[Suite | BrokenSuite]
    covered: frozenset[str]
    uncommitted: Sequence[str] = ()
    workflow: str = ""


@dataclass(frozen=True)
class Tree:
    """The tracked files of a side, and which files of it are known."""

    files: TrackedFiles
    known: KnownFiles


async def read_trees(
    repository: GitRepository, head: HeadFiles, base: Base, settings: Settings
) -> Mapping[Path, Tree]:
    """The files of both sides by the root of the tree."""
    sides = {repository.root: (head.covered, head.uncommitted)}
    if base.root is not None:
        sides[base.root] = (base.covered, ())
    trees = {}
    for root, (covered, differing) in sides.items():
        side = GitRepository(root, environ=repository.environ)
        ids = await side.blobs(differing)
        known = await read_known_files(side, ids, settings, head.workflow)
        trees[root] = Tree(TrackedFiles(ids, uncovered(ids, covered, known)), known)
    return trees


def describe_change(
    files: Sequence[ChangedFile] | None,
    head: HeadFiles,
    base: Base,
    trees: Mapping[Path, Tree],
    settings: Settings,
    *,
    everything: bool,
) -> Change:
    """The change of these files, with what both sides know about them: a file that only base's
    suites reference affects them, too. Blocks: links are looked up."""
    paths = [path for file in files or () for path in file.paths]
    renamed = {old: file.path for file in files or () for old in file.paths[1:]}
    replies = [NamedFile(path, "stored reply") for path in edited_replies(paths, settings)]
    named: defaultdict[str, list[NamedFile]] = defaultdict(list)
    for suite in head.suites if files else ():
        named[suite.path] += replies
    before: dict[str, Suite | BrokenSuite] = {}
    for suite in base.suites if files else ():
        path = renamed.get(suite.path, suite.path)
        named[path] += suite.files
        before[path] = suite
    for suite in head.suites:
        if edits := _edited_in_file(suite, before.get(suite.path)):
            named[suite.path].append(NamedFile(FILE, edits))
    rules = (settings.watch_rules, base.watch)
    is_declared = all(rules)
    covered = {*head.covered, *base.covered, *(file.path for file in replies)}
    outside = {path for tree in trees.values() for path in uncovered(paths, covered, tree.known)}
    if is_declared:
        outside = {path for path in outside if not _is_ruled(path, rules)}
    return Change(
        files,
        everything=everything,
        base_suites=tuple(suite.path for suite in base.suites),
        named=named,
        watch=rules,
        names_agent=is_declared and all(map(names_files, rules)),
        uncovered=tuple(file for file in files or () if not outside.isdisjoint(file.paths)),
        links=linked_files(paths, list(trees)),
    )


def _is_ruled(path: str, rules: Iterable[Sequence[WatchRule]]) -> bool:
    """Whether a rule of one side names a file, or rules of both sides exclude it."""
    found = [[rule for rule in of_side if rule.covers(path)] for of_side in rules]
    return all(found) or any(not rule.excludes for of_side in found for rule in of_side)


def _edited_in_file(head: Suite | BrokenSuite, base: Suite | BrokenSuite | None) -> str:
    """What `.agentevals.yaml` changes for a suite: the entry of its runner in more than its place,
    or the targets file."""
    now, then = (side.entry if isinstance(side, Suite) else None for side in (head, base))
    if now != then:
        return "runner"
    return "targets" if base and head.targets.path != base.targets.path else ""


def linked_files(paths: Iterable[str], roots: Sequence[Path]) -> Mapping[str, Sequence[str]]:
    """The files that changed symbolic links lead to in the trees, by the link's path."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        for root in roots:
            if (root / path).is_symlink():
                target = Path(os.path.realpath(root / path))  # a circle of links ends in itself
                if target.is_relative_to(root):
                    found[path].append(target.relative_to(root).as_posix())
    return found


def edited_replies(paths: Iterable[str], settings: Settings) -> Sequence[str]:
    """The changed paths that are stored replies, if these answer."""
    folder = f"{settings.cache_dir}/"
    return [path for path in paths if settings.cache == "replay" and path.startswith(folder)]
