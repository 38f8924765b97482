"""The change between base and head: the files that git lists, and what both sides know about
them."""

import asyncio
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentevals_action.execution.suite_description import TrackedFiles
from agentevals_action.model.diagnostic import Diagnostic, NamedFile
from agentevals_action.model.path_patterns import WatchRule, useful
from agentevals_action.model.quarantine import FILE
from agentevals_action.model.skill import find_skill_files
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.review.inputs.base_tree import Base
from agentevals_action.review.inputs.known_files import KnownFiles, read_known_files, uncovered
from agentevals_action.review.inputs.request import Suites
from agentevals_action.review.inputs.selection import Change
from agentevals_action.settings import Settings
from agentevals_action.suites.checkout import Checkout
from agentevals_action.system.git import ChangedFile, GitRepository


@dataclass(frozen=True)
class Head:
    """The tree under test with its suites. `covered` are the files of all suites, also of those of
    other jobs, as `files_of_all`. `errors` are about the configurations that name suites,
    `warnings` about files of other tools, `notice` about tests that cannot run. `commit` is empty
    without a commit, `uncommitted` are the paths that differ from it, `workflow` is the path of the
    workflow that runs."""

    checkout: Checkout
    suites: Suites
    covered: Mapping[str, bool]
    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    commit: str = ""
    uncommitted: tuple[str, ...] = ()
    workflow: str = ""
    notice: str = ""


@dataclass(frozen=True)
class Tree:
    """The tree of a side: its tracked `files` by all their paths, the `known` files that belong to
    no agent, and its symbolic `links` by the file or folder that they lead to."""

    root: Path
    known: KnownFiles
    links: Mapping[str, Sequence[str]]
    files: TrackedFiles = field(default_factory=TrackedFiles)

    def with_files(self, ids: Mapping[str, str], covered: Mapping[str, bool]) -> "Tree":
        """The tree with its tracked files (`ids` by path). Blocks: the files are looked up."""
        every = {other: ids[path] for path in ids for other in (path, *self.other_paths(path))}
        of_suites = {path for path in ids if covered.get(path)}
        return replace(self, files=TrackedFiles(every, uncovered(ids, of_suites, self.known)))

    def other_paths(self, path: str) -> Iterator[str]:
        """The other paths of an entry of git: through links, and with a slash if it is a submodule
        or a link to a folder."""
        end = len(path)
        while end > 0:
            yield from (f"{link}{path[end:]}" for link in self.links.get(path[:end], ()))
            end = path.rfind("/", 0, end)
        if (self.root / path).is_dir():
            yield f"{path}/"


async def read_change(
    head: Head, base: Base, commit: str | None = None, *, everything: bool
) -> Change:
    """The change from base to a commit of head (None: to the working tree) with what both sides
    know about its files. Without a base, the changed files are unknown."""
    files, trees = None, dict[Path, Tree]()
    if repository := head.checkout.repository:
        trees = await _read_trees(repository, head, base)
        files = await repository.changed_files(base.sha, commit) if base.sha else None
    return await asyncio.to_thread(
        _describe_change, files, head, base, trees, everything=everything
    )


async def _read_trees(repository: GitRepository, head: Head, base: Base) -> dict[Path, Tree]:
    """The files of both sides by the root of the tree."""
    settings = head.checkout.settings
    sides = {repository.root: (head.covered, head.uncommitted)}
    if base.root is not None:
        sides[base.root] = (base.covered, ())
    trees = {}
    for root, (covered, differing) in sides.items():
        side = GitRepository(root, environ=repository.environ)
        ids = await side.blobs(differing)
        links = await asyncio.to_thread(linked_files, ids, [root])
        known = await read_known_files(side, ids, covered, links, settings, head.workflow)
        by_target: defaultdict[str, list[str]] = defaultdict(list)
        for link, targets in links.items():
            for target in targets:
                by_target[target].append(link)
        trees[root] = await asyncio.to_thread(Tree(root, known, by_target).with_files, ids, covered)
    return trees


def _describe_change(
    files: Sequence[ChangedFile] | None,
    head: Head,
    base: Base,
    trees: Mapping[Path, Tree],
    *,
    everything: bool,
) -> Change:
    """The change of these `files`, with what both sides know about them: a file that only base's
    suites reference affects these suites, too. Blocks: links are looked up."""
    settings = head.checkout.settings
    paths = [path for file in files or () for path in file.paths]
    renamed = {old: file.path for file in files or () for old in file.paths[1:]}
    replies = [NamedFile(path, "stored reply") for path in edited_replies(paths, settings)]
    named: defaultdict[str, list[NamedFile]] = defaultdict(list)
    for suite in head.suites if files else ():
        named[suite.path] += replies
    on_base: dict[str, Suite | BrokenSuite] = {}
    for suite in base.suites if files else ():
        path = renamed.get(suite.path, suite.path)
        named[path] += suite.files
        on_base[path] = suite
    for suite in head.suites:
        if edits := _edited_in_file(suite, on_base.get(suite.path)):
            named[suite.path].append(NamedFile(FILE, edits))
    known = {*paths, *(path for tree in trees.values() for path in tree.files.ids)}
    covered = {**base.covered, **head.covered}
    suites = {suite.path for suite in (*head.suites, *base.suites)}
    if settings.working_directory != ".":
        suites |= covered.keys()  # the suites of other jobs are known among their files alone
    rules = tuple(
        tuple(rule for rule in useful(of_side, known) if any(map(rule.affects, suites)))
        for of_side in (settings.watch_rules, base.watch)
    )
    every = {
        path: (path, *(other for tree in trees.values() for other in tree.other_paths(path)))
        for path in paths
    }
    of_suites = [
        {file.path for file in (*suite.files, *named[suite.path])} for suite in head.suites
    ]
    in_all = set.intersection(*of_suites) if of_suites else set[str]()
    in_both = {
        path for path in covered if head.covered.get(path, True) and base.covered.get(path, True)
    }
    outside = {
        path
        for tree in trees.values()
        for path in uncovered(paths, in_both | in_all, tree.known)
        if not (all(rules) and _is_ruled(every[path], rules))
    }
    with_skills = any(isinstance(suite, Suite) and suite.installs_skills for suite in head.suites)
    gone = {file.paths[-1] for file in files or () if file.status in ("removed", "renamed")}
    outside |= {path for path in gone for tree in trees.values() if tree.known.is_built(path)}
    return Change(
        files,
        everything=everything,
        base_suites=tuple(suite.path for suite in base.suites),
        named=named,
        watch=rules,
        uncovered=tuple(file for file in files or () if not outside.isdisjoint(file.paths)),
        shared=covered.keys() & outside,
        links=linked_files(paths, list(trees)),
        every_path=every,
        of_skills=find_skill_files(paths, known) if with_skills else {},
        tracked={root: tree.files for root, tree in trees.items()},
    )


def _is_ruled(paths: Sequence[str], rules: Iterable[Sequence[WatchRule]]) -> bool:
    """Whether a rule of one side names a file, or rules of both sides exclude it; `paths` are all
    paths of the file."""
    covering = [[rule for rule in of_side if any(map(rule.covers, paths))] for of_side in rules]
    return all(covering) or any(not rule.excludes for of_side in covering for rule in of_side)


def _edited_in_file(head: Suite | BrokenSuite, base: Suite | BrokenSuite | None) -> str:
    """What `.agentevals.yaml` changes for a suite: the entry of its runner apart from the
    entry's place, or the targets file."""
    on_head, on_base = (side.entry if isinstance(side, Suite) else None for side in (head, base))
    if on_head != on_base:
        return "runner"
    return "targets" if base and head.targets.path != base.targets.path else ""


def linked_files(paths: Iterable[str], roots: Sequence[Path]) -> Mapping[str, Sequence[str]]:
    """The files that changed symbolic links lead to in the trees, by the link's path."""
    by_link: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        for root in roots:
            if (root / path).is_symlink():
                target = Path(os.path.realpath(root / path))  # a circle of links ends in itself
                if target.is_relative_to(root):
                    by_link[path].append(target.relative_to(root).as_posix())
    return by_link


def edited_replies(paths: Iterable[str], settings: Settings) -> Sequence[str]:
    """The changed paths that are stored replies, if the run replays stored replies."""
    folder = f"{settings.cache_dir}/"
    return [path for path in paths if settings.cache == "replay" and path.startswith(folder)]
