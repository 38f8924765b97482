"""Glob patterns over repository paths, and the rules of the input `watch`.

`**` crosses folders, `*` does not, `{a,b}` is a choice, hidden names count."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from wcmatch import glob

_FLAGS = glob.GLOBSTAR | glob.BRACE | glob.DOTGLOB | glob.FORCEUNIX


def matches(path: str, pattern: str) -> bool:
    """Whether a path (relative, POSIX) matches one pattern; the name of a folder matches all files
    below it."""
    return bool(_compiled(pattern.removeprefix("./")).match(path))


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> glob.WcMatcher[str]:
    return glob.compile([pattern, pattern.rstrip("/") + "/**"], flags=_FLAGS)


def selected(path: str, patterns: Sequence[str]) -> bool:
    """Whether a list of patterns selects a path; `!pattern` excludes, the last match decides."""
    chosen = False
    for pattern in patterns:
        if matches(path, pattern.removeprefix("!")):
            chosen = not pattern.startswith("!")
    return chosen


@dataclass(frozen=True)
class WatchRule:
    """A change of a file that matches the glob `files` affects the suites that match the glob
    `suites` (None: all); a `!` in front of `files` excludes. Paths are relative to the
    repository."""

    files: str
    suites: str | None = None

    def __str__(self) -> str:
        return self.files if self.suites is None else f"{self.files} => {self.suites}"


def read_rule(text: str) -> WatchRule:
    """One rule as written, `glob` or `glob => suite glob`; ValueError for anything else."""
    files, arrow, suites = (part.strip() for part in text.partition("=>"))
    if not files.removeprefix("!") or (arrow and not suites) or "=>" in suites:
        raise ValueError("write `glob` or `glob => suite glob`, one per line")
    return WatchRule(files, suites or None)


def rule_for(rules: Sequence[WatchRule], path: str, suite: str) -> WatchRule | None:
    """The rule by which a change of a file affects a suite, None without one; the last match
    decides."""
    for rule in reversed(rules):
        if matches(path, rule.files.removeprefix("!")) and (
            rule.suites is None or matches(suite, rule.suites)
        ):
            return None if rule.files.startswith("!") else rule
    return None
