"""The change between base and head: the files that git lists, and what both sides know about
them."""

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agentevals_action.model.files import NamedFile
from agentevals_action.model.quarantine import FILE
from agentevals_action.model.runner import Runner
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.review.base_tree import Base
from agentevals_action.review.selection import Change
from agentevals_action.settings import Settings
from agentevals_action.system.git import ChangedFile


def describe_change(
    files: Sequence[ChangedFile] | None,
    base: Base,
    root: Path,
    suites: Sequence[Suite | BrokenSuite],
    settings: Settings,
    *,
    everything: bool,
) -> Change:
    """The change of these files, with what base knows about them: a file that only base's suites
    reference affects them, too. `root` and `suites` are those of head. Blocks: links are looked
    up."""
    paths = [path for file in files or () for path in file.paths]
    renamed = {old: file.path for file in files or () for old in file.paths[1:]}
    replies = [NamedFile(path, "stored reply") for path in edited_replies(paths, settings)]
    named: defaultdict[str, list[NamedFile]] = defaultdict(list)
    for suite in suites if files else ():
        named[suite.path] += replies
    before: dict[str, Runner | None] = {}
    for suite in base.suites if files else ():
        path = renamed.get(suite.path, suite.path)
        named[path] += suite.files
        before[path] = suite.runner if isinstance(suite, Suite) else None
    for suite in suites:
        if isinstance(suite, Suite) and _differ(suite.runner, before.get(suite.path)):
            named[suite.path].append(NamedFile(FILE, "runner"))
    return Change(
        files,
        everything=everything,
        base_suites=tuple(suite.path for suite in base.suites),
        named=named,
        watch=(settings.watch_rules, base.watch),
        links=linked_files(paths, [root, *([base.root] if base.root else [])]),
    )


def _differ(head: Runner | None, base: Runner | None) -> bool:
    """Whether the entries of a runner differ in more than their place."""
    now, then = (side and side.model_dump(exclude={"location"}) for side in (head, base))
    return now != then


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
