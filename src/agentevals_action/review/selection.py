"""Pure: which suites a change touches, through which files, and which are gone (action.md, "Which
suites")."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from agentevals_action.model.comparison import ChangedFile, Selection
from agentevals_action.model.suite import BrokenSuite, NamedFile, Suite
from agentevals_action.model.watch import WatchRule, rule_for

#: Words of reasons for one suite; the rest is counted.
_REASONS = 20
#: Files that a suite takes from the nearest folder above it that has them: without one it takes
#: another's.
_SEARCHED = ("targets.yaml", "targets.yml", "config.yaml", "config.yml")
_ALL = "all suites run, whatever changed"
_UNKNOWN = "what changed could not be told, so all suites run"


@dataclass(frozen=True)
class Change:
    """What is known of a change: `files` None when it could not be told, `everything` when all
    suites are asked for anyway.

    `base_suites` are the suite files that base has, where that is known, and `base_files` what
    head's suites named there, by their path on head. `links` are changed paths that are symbolic
    links on either side, with where they lead."""

    files: Sequence[ChangedFile] | None = None
    everything: bool = False
    base_suites: Sequence[str] | None = None
    base_files: Mapping[str, Sequence[NamedFile]] = field(default_factory=dict)
    links: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Discovery:
    """What runs and why, and what cannot: `selections` are whole suites, `touched_broken` those
    whose faults make the outcome invalid, `untouched_broken` those that are worth a warning. `gone`
    are suite files that base has and head has not."""

    selections: tuple[Selection, ...] = ()
    touched_broken: tuple[BrokenSuite, ...] = ()
    untouched_broken: tuple[BrokenSuite, ...] = ()
    gone: tuple[str, ...] = ()


def select_suites(
    suites: Sequence[Suite | BrokenSuite], change: Change, watch: Sequence[WatchRule] = ()
) -> Discovery:
    """Every suite that the change touches, in the order given, each with its reasons."""
    selections: list[Selection] = []
    touched: list[BrokenSuite] = []
    untouched: list[BrokenSuite] = []
    renamed = {file.path: previous for file in change.files or () if (previous := _previous(file))}
    for suite in suites:
        reasons = _reasons(suite, change, watch)
        if isinstance(suite, BrokenSuite):
            (touched if reasons or change.everything or change.files is None else untouched).append(
                suite
            )
        elif reasons or change.everything or change.files is None:
            selections.append(_selection(suite, reasons, change, renamed.get(suite.path)))
    return Discovery(
        tuple(selections), tuple(touched), tuple(untouched), _gone(suites, change, renamed)
    )


def _selection(
    suite: Suite, reasons: Mapping[str, str], change: Change, base_path: str | None
) -> Selection:
    words = list(dict.fromkeys(reasons.values()))
    if len(words) > _REASONS:
        words = [*words[:_REASONS], f"and {len(words) - _REASONS} more files"]
    if change.everything:
        words.insert(0, _ALL)
    elif change.files is None:
        words.insert(0, _UNKNOWN)
    return Selection(suite.path, tuple(words), tuple(_shown(path) for path in reasons), base_path)


def _gone(
    suites: Iterable[Suite | BrokenSuite], change: Change, renamed: Mapping[str, str]
) -> tuple[str, ...]:
    here = {suite.path for suite in suites}
    moved = {previous for path, previous in renamed.items() if path in here}
    return tuple(
        path for path in change.base_suites or () if path not in here and path not in moved
    )


def _reasons(
    suite: Suite | BrokenSuite, change: Change, watch: Sequence[WatchRule]
) -> dict[str, str]:
    """In words why each changed file touches the suite, by the file's path."""
    named = {
        file.path: file.role for file in (*change.base_files.get(suite.path, ()), *suite.files)
    }
    judges = {
        str(folder) for path in named if (folder := PurePosixPath(path).parent).name == "judges"
    }
    reasons = {}
    for file in change.files or ():
        reason = (
            _named(suite, file, named, change.links)
            or _beside(suite, file, judges)
            or _watched(suite, file, watch)
        )
        if reason is None and isinstance(suite, BrokenSuite):
            reason = _blamed(suite, file)
        if reason is not None:
            reasons[file.path] = reason
    return reasons


def _named(
    suite: Suite | BrokenSuite,
    file: ChangedFile,
    named: Mapping[str, str],
    links: Mapping[str, Sequence[str]],
) -> str | None:
    """A named file itself, a link that leads to it, or a folder above it that git knows as one
    thing (a submodule, a link)."""
    own = _paths(file)
    for path in (*own, *(target for link in own for target in links.get(link, ()))):
        if path == suite.path:
            return _words(file)
        if role := named.get(path) or next(
            (named[name] for name in named if name.startswith(f"{path}/")), None
        ):
            return f"{_words(file)} ({role})"
    return None


def _beside(suite: Suite | BrokenSuite, file: ChangedFile, judges: Collection[str]) -> str | None:
    """A file that head's suite no longer names because it is not there any more, but had: beside
    its judges, or found in a search."""
    for path in map(PurePosixPath, _left(file)):
        if str(path.parent) in judges:
            return f"{_words(file)} (beside a judge)"
        above = PurePosixPath(suite.path).parents
        if path.name in _SEARCHED and path.parent.name == ".agentv" and path.parent.parent in above:
            return f"{_words(file)} ({'targets file' if path.name.startswith('targets') else 'configuration'})"
    return None


def _watched(
    suite: Suite | BrokenSuite, file: ChangedFile, watch: Sequence[WatchRule]
) -> str | None:
    if any(rule_for(watch, path, suite.path) for path in _paths(file)):
        return f"watch: {_shown(file.path)}"
    return None


def _blamed(suite: BrokenSuite, file: ChangedFile) -> str | None:
    """A fault in the file, or one that speaks of it: a suite that misses a file which the change
    took away names none such any more.

    The name alone is enough, since a broken suite that only looks touched is told louder than it
    must be, and no more."""
    for path in _paths(file):
        if any(diagnostic.location.path == path for diagnostic in suite.errors):
            return _words(file)
    names = {PurePosixPath(path).name for path in _left(file)}
    if any(name in diagnostic.problem for diagnostic in suite.errors for name in names):
        return _words(file)
    return None


def _previous(file: ChangedFile) -> str | None:
    """Where a renamed file was; a copied one still is where it was."""
    return file.previous_path if file.status == "renamed" else None


def _paths(file: ChangedFile) -> tuple[str, ...]:
    previous = _previous(file)
    return (file.path, previous) if previous else (file.path,)


def _left(file: ChangedFile) -> tuple[str, ...]:
    """The path at which there is no file any more."""
    if previous := _previous(file):
        return (previous,)
    return (file.path,) if file.status == "removed" else ()


def _words(file: ChangedFile) -> str:
    if previous := _previous(file):
        return f"renamed: {_shown(previous)} → {_shown(file.path)}"
    verb = file.status if file.status in ("added", "removed") else "changed"
    return f"{verb}: {_shown(file.path)}"


def _shown(path: str) -> str:
    """A path as it can be written anywhere: bytes that are no UTF-8 as `\\xff`."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
