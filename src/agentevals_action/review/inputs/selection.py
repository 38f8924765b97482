"""The selection of suites: which suites a change affects and why, and which are gone. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentevals_action.execution.suite_description import TrackedFiles
from agentevals_action.formatting import printable_path
from agentevals_action.model.diagnostic import NamedFile
from agentevals_action.model.path_patterns import WatchRule, names_files, rule_for
from agentevals_action.model.run import Selection
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.system.git import ChangedFile

#: Reasons for one suite that are listed; the others are counted.
_MAX_REASONS = 20
#: Files of a chain of imports that a reason names.
_MAX_CHAIN = 5


@dataclass(frozen=True)
class Change:
    """A change: `files` is None if they are unknown, `everything` if all suites run anyway.

    `base_suites` are the paths of the suites on base, if known. `named` are files that affect a
    suite (by its path on head) besides the files that it names itself: stored replies, and files
    that it names on base. `watch` are the rules of head and the rules of base that match a file
    and a suite, because a change cannot uncover its own files. `uncovered` are the changed files
    that no rule and not all suites cover, and that may be an agent's: they affect all suites whose
    agent the rules of both sides do not name. `shared` are the uncovered files that some suites
    cover.
    `links` are the changed paths that are symbolic links on either side, with the files that they
    lead to, which suites reference. `every_path` are all paths by which rules may name a changed
    path. `of_skills` are the changed paths in skills, with the folder of the skill, where a suite
    of head installs its skills: they do not affect such suites. `tracked` are the files of each
    tree by its root."""

    files: Sequence[ChangedFile] | None = None
    everything: bool = False
    base_suites: Sequence[str] | None = None
    named: Mapping[str, Sequence[NamedFile]] = field(default_factory=dict)
    watch: Sequence[Sequence[WatchRule]] = ()
    uncovered: Sequence[ChangedFile] = ()
    shared: Collection[str] = ()
    links: Mapping[str, Sequence[str]] = field(default_factory=dict)
    every_path: Mapping[str, Sequence[str]] = field(default_factory=dict)
    of_skills: Mapping[str, str] = field(default_factory=dict)
    tracked: Mapping[Path, TrackedFiles] = field(default_factory=dict)

    def unknown_to(self, suites: Collection[Suite]) -> Sequence[ChangedFile]:
        """The uncovered files that may belong to the agent of one of these suites."""
        if not suites or not all(suite.installs_skills for suite in suites):
            return self.uncovered
        return [file for file in self.uncovered if not self.of_skills.keys() >= {*file.paths}]

    def names_agent(self, suite: str) -> bool:
        """Whether rules of both sides name the agent of a suite."""
        affecting = [[rule for rule in rules if rule.affects(suite)] for rules in self.watch]
        return bool(affecting) and all(map(names_files, affecting))


@dataclass(frozen=True)
class SelectedSuites:
    """The suites that run and why; the `broken` suites that make the outcome invalid; the broken
    suites that the change does not affect (`unaffected`); the paths that only base has (`gone`)."""

    selections: tuple[Selection, ...] = ()
    broken: tuple[BrokenSuite, ...] = ()
    unaffected: tuple[BrokenSuite, ...] = ()
    gone: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the change affects no suite."""
        return not self.selections and not self.broken


def select_suites(suites: Sequence[Suite | BrokenSuite], change: Change) -> SelectedSuites:
    """The suites that the change affects, in the order given, with the reasons."""
    selections: list[Selection] = []
    broken: list[BrokenSuite] = []
    unaffected: list[BrokenSuite] = []
    renamed = {file.path: old for file in change.files or () for old in file.paths[1:]}
    for suite in suites:
        reasons = _reasons(suite, change)
        affected = bool(reasons) or change.everything or change.files is None
        if isinstance(suite, BrokenSuite):
            (broken if affected else unaffected).append(suite)
        elif affected:
            selections.append(_selection(suite, reasons, change, renamed.get(suite.path)))
    paths = {suite.path for suite in suites}
    moved = {old for path, old in renamed.items() if path in paths}
    gone = (path for path in change.base_suites or () if path not in paths | moved)
    return SelectedSuites(tuple(selections), tuple(broken), tuple(unaffected), tuple(gone))


def _selection(
    suite: Suite, reasons: Mapping[str, str], change: Change, base_path: str | None
) -> Selection:
    sentences = list(dict.fromkeys(reasons.values()))
    if len(sentences) > _MAX_REASONS:
        sentences = [*sentences[:_MAX_REASONS], f"and {len(sentences) - _MAX_REASONS} more files"]
    if change.everything:
        sentences.insert(0, "all suites run, whatever changed")
    elif change.files is None:
        sentences.insert(0, "the changed files are unknown, so all suites run")
    return Selection(suite.path, tuple(sentences), tuple(map(printable_path, reasons)), base_path)


def _reasons(suite: Suite | BrokenSuite, change: Change) -> dict[str, str]:
    """Why each changed file affects the suite, by the file's path."""
    named = (*change.named.get(suite.path, ()), *suite.files)
    roles = {file.path: _describe_role(file) for file in named}
    if isinstance(suite, BrokenSuite):  # a new file may have broken it
        roles = {error.location.path: "error" for error in suite.errors} | roles
    reasons = {}
    unknown = change.unknown_to([suite] if isinstance(suite, Suite) else ())
    if change.names_agent(suite.path):  # the files of a suite with errors are unknown
        is_broken = isinstance(suite, BrokenSuite)
        unknown = [file for file in unknown if is_broken and file.path not in change.shared]
    for file in change.files or ():
        reason = _referenced(suite, file, roles, change.links) or _watched(suite, file, change)
        if reason is None and file in unknown:
            covering = (
                "only other suites cover" if file.path in change.shared else "no suite covers"
            )
            reason = f"{covering} {printable_path(file.path)}"
        if reason is not None:
            reasons[file.path] = reason
    return reasons


def _referenced(
    suite: Suite | BrokenSuite,
    file: ChangedFile,
    roles: Mapping[str, str],
    links: Mapping[str, Sequence[str]],
) -> str | None:
    """The reason if the suite references the file, the file that it links to, or a file below it:
    git lists a submodule, or a link to a folder, as one entry."""
    targets = (target for name in file.paths for target in links.get(name, ()))
    for path in (*file.paths, *targets):
        if path == suite.path:
            return _describe(file)
        below = (role for name, role in roles.items() if name.startswith(f"{path}/"))
        if role := roles.get(path) or next(below, None):
            return f"{_describe(file)} ({role})"
    return None


def _watched(suite: Suite | BrokenSuite, file: ChangedFile, change: Change) -> str | None:
    for path in file.paths:
        every = change.every_path.get(path, [path])
        if any(rule_for(rules, name, suite.path) for rules in change.watch for name in every):
            return f"watch: {printable_path(file.path)}"
    return None


def _describe_role(file: NamedFile) -> str:
    """The role of a file, or the files by whose imports the suite depends on it."""
    if not file.importers:
        return file.role
    names = [printable_path(path) for path in (*file.importers, file.path)]
    if len(names) > _MAX_CHAIN:
        names = [*names[: _MAX_CHAIN - 2], "…", names[-1]]
    return f"{names[0]} imports {', which imports '.join(names[1:])}"


def _describe(file: ChangedFile) -> str:
    if old := file.paths[1:]:
        return f"renamed: {printable_path(old[0])} → {printable_path(file.path)}"
    verb = file.status if file.status in ("added", "removed") else "changed"
    return f"{verb}: {printable_path(file.path)}"
