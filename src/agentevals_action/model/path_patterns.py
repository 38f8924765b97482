"""Glob patterns over repository paths, and the rules of the input `watch`.

`**` crosses folders, `*` does not, `{a,b}` is a choice, hidden names count."""

import re
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


def can_contain(folder: str, pattern: str) -> bool:
    """Whether a pattern can match a file below a folder whose files are unknown."""
    parts = _SLASH.split(pattern)
    starts = ("/".join(parts[:count]) for count in range(1, len(parts)))
    return matches(folder, pattern) or any(
        glob.globmatch(folder, start, flags=_FLAGS) for start in starts
    )


#: A slash outside of `{a,b}`.
_SLASH = re.compile(r"/(?![^{]*\})")
_QUOTES = "'\"`"
_SEPARATOR = re.compile(r"\s*(?:=>|->|⇒|→)\s*|\s*:\s+")
_CLASS = re.compile(r"\[[^]/]+\]")
#: What a part of a rule cannot contain, and the advice.
_FORBIDDEN = (
    (re.compile(r"[<>]|(^|\s)=|=$"), "write one `=>` between the files and the suites"),
    (re.compile(r"[;|]|\*\s"), "write one rule per line, and `=>` in front of the suites"),
    (re.compile(":"), "write `=>` between the files and the suites, and `?` for a `:` in a name"),
    (re.compile(f"[{_QUOTES}]"), "put the quotes around the whole glob, or leave them out"),
    (re.compile(r"\\"), "write `/` between folders"),
    (re.compile(r"(^|/)\.\.(/|$)"), "write the path from the root of the repository"),
    (re.compile("^~"), "write the path from the root of the repository"),
    (re.compile(r"(^|\s)#"), "leave the comment out"),
    (re.compile("^-"), "write a space after the dash, or `[-]` if the name begins with it"),
    (re.compile("!"), "write `!` once, in front of the rule"),
    (re.compile(r"[][]"), "write `[abc]` for one of these characters, and no list"),
)


@dataclass(frozen=True)
class WatchRule:
    """A change of a file that matches the glob `files` affects the suites that match the glob
    `suites` (None: all); with `excludes` it does not. Both globs are relative to the repository,
    and to `folder` if there is one."""

    files: str
    suites: str | None = None
    excludes: bool = False
    folder: str = ""

    def __str__(self) -> str:
        files = f"!{self.files}" if self.excludes else self.files
        return files if self.suites is None else f"{files} => {self.suites}"

    def affects(self, suite: str) -> bool:
        """Whether the rule is about a suite, by its path."""
        return self.suites is None or any(matches(path, self.suites) for path in self._paths(suite))

    def covers(self, path: str, is_folder: bool = False) -> bool:
        """Whether the rule is about a file. The files of a folder, such as a submodule, are
        unknown: one that the rule may match is enough, but not for an exclusion."""
        match = can_contain if is_folder and not self.excludes else matches
        return any(match(one, self.files) for one in self._paths(path))

    def _paths(self, path: str) -> tuple[str, ...]:
        inside = path.startswith(f"{self.folder}/") and self.folder
        return (path, path.removeprefix(f"{self.folder}/")) if inside else (path,)


def read_rule(text: str) -> WatchRule:
    """One rule as written: `glob` or `glob => suite glob`, with `!` in front to exclude. Other
    forms with an obvious meaning are read, too: `->` or `: ` for `=>`, quotes, a dash as in a list,
    a leading `/` or `./`. ValueError for anything else: a rule that silently matches nothing lets
    every change pass."""
    parts = _SEPARATOR.split(_unquoted(text.strip().removeprefix("- ").strip()))
    if len(parts) > 2:
        raise ValueError(f"`{text}` has two arrows; write one rule per line")
    excludes = parts[0].startswith("!") or _unquoted(parts[0]).startswith("!")
    globs = [_unquoted(part) for part in parts]
    if excludes:
        globs[0] = _unquoted(globs[0].removeprefix("!").strip())
    files, suites = _read_glob(globs[0], text), None
    if len(globs) > 1:
        suites = _read_glob(globs[1], text)
    return WatchRule(files, suites, excludes)


def _unquoted(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] in _QUOTES and text.count(text[0]) == 2
    return text[1:-1].strip() if is_quoted and text[-1] == text[0] else text


def _read_glob(text: str, rule: str) -> str:
    """A glob without what does not change its meaning; ValueError if it is none."""
    if not text:
        raise ValueError(f"`{rule}` is incomplete; write `glob` or `glob => suite glob`")
    for forbidden, advice in _FORBIDDEN:
        if forbidden.search(_CLASS.sub("", text)):
            raise ValueError(f"`{rule}` is not a rule; {advice}")
    if text.count("{") != text.count("}"):
        raise ValueError(f"`{rule}` is not a rule; close each `{{`")
    return "/".join(part for part in text.split("/") if part not in ("", ".")) or "**"


def rule_for(
    rules: Sequence[WatchRule], path: str, suite: str, is_folder: bool = False
) -> WatchRule | None:
    """The rule by which a change of a file affects a suite, None without one; the last match
    decides. `is_folder` as in `WatchRule.covers`."""
    for rule in reversed(rules):
        if rule.covers(path, is_folder) and rule.affects(suite):
            return None if rule.excludes else rule
    return None
