"""Glob patterns over repository paths, and the rules of the input `watch`.

`**` crosses folders, `*` does not, `{a,b}` is a choice, hidden names count."""

import fnmatch
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator
from wcmatch import glob
from wcmatch._wcparse import PatternLimitException

from agentevals_action.formatting import cut
from agentevals_action.validation.file_model import NonEmpty

_FLAGS = glob.GLOBSTAR | glob.BRACE | glob.DOTGLOB | glob.FORCEUNIX
#: The most alternatives of the braces of a glob: each is a regular expression.
_MOST, _SHOWN = 1000, 40


def matches(path: str, pattern: str) -> bool:
    """Whether a path (relative, POSIX) matches one pattern; the name of a folder matches all files
    below it."""
    return bool(_compiled(pattern.removeprefix("./")).match(path))


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> glob.WcMatcher[str]:
    return glob.compile([pattern, pattern.rstrip("/") + "/**"], flags=_FLAGS, limit=2 * _MOST)


def check_glob(pattern: str) -> str:
    """A glob, with or without `!`; ValueError if its braces have too many alternatives."""
    try:
        _compiled(pattern.removeprefix("!").removeprefix("./"))
    except PatternLimitException:
        problem = f"the braces of `{cut(pattern, _SHOWN)}` have more than {_MOST:,} alternatives"
        raise ValueError(f"{problem}; write several globs, or `*`") from None
    return pattern


#: A glob in a file.
Glob = Annotated[NonEmpty, AfterValidator(check_glob)]


def selected(path: str, patterns: Sequence[str]) -> bool:
    """Whether a list of patterns selects a path; `!pattern` excludes, the last match decides."""
    chosen = False
    for pattern in patterns:
        if matches(path, pattern.removeprefix("!")):
            chosen = not pattern.startswith("!")
    return chosen


def selected_name(name: str, patterns: Sequence[str]) -> bool:
    """As `selected`, for the id of a test, in which `*` matches every character."""
    chosen = False
    for pattern in patterns:
        bare = pattern.removeprefix("!")
        if name == bare or fnmatch.fnmatchcase(name, bare):
            chosen = bare == pattern
    return chosen


#: The characters with a meaning in a glob, and `<`, which begins a comment in Markdown.
_MEANS = re.compile(r"[*?\[{\\<]|^!")


def literal(name: str) -> str:
    """A glob for a path or the id of a test, with `?` for a character with a meaning in globs."""
    return _MEANS.sub("?", name)


#: What no glob of a rule contains; `?` stands for such a character in a name.
_NO_GLOB = re.compile(r"[\s\"'`<>=|;:\\]|^[-!~#]|(^|/)\.\.(/|$)")
#: Where the fixed beginning of a glob ends.
_WILD = re.compile(r"[*?{\[]")


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

    def covers(self, path: str) -> bool:
        """Whether the rule is about a file, or about a submodule, which is one path for git. With a
        slash at its end, the path is a folder: whether the rule may be about a file in it."""
        if path.endswith("/") and not self.excludes:
            start = _WILD.split(self.files)[0]
            return any(
                (start.startswith(name) or name.startswith(start))
                and ("**" in self.files or self.files.count("/") >= name.count("/"))
                for name in self._paths(path)
            )
        files = self.files.removesuffix("/**")
        return any(matches(name, files) for name in self._paths(path.rstrip("/")))

    def _paths(self, path: str) -> tuple[str, ...]:
        inside = path.startswith(f"{self.folder}/") and self.folder
        return (path, path.removeprefix(f"{self.folder}/")) if inside else (path,)


def read_rule(text: str) -> WatchRule:
    """One rule as written: `glob`, `glob => suite glob`, or `!glob` to exclude. ValueError for any
    other form."""
    files, arrow, suites = (part.strip() for part in text.partition("=>"))
    excludes = files.startswith("!") and not arrow
    globs = [files.removeprefix("!") if excludes else files, *([suites] if arrow else [])]
    if any(not glob or _NO_GLOB.search(glob) for glob in globs):
        raise ValueError(
            f"`{text}` is not a rule; write `glob`, `glob => suite glob` or `!glob`, with paths "
            "from the root of the repository and `?` for a space or a quote in a name"
        )
    globs = [check_glob(glob) for glob in globs]
    globs = ["/".join(part for part in glob.split("/") if part not in ("", ".")) for glob in globs]
    return WatchRule(globs[0] or "**", globs[1] or "**" if arrow else None, excludes)


def rule_for(rules: Sequence[WatchRule], path: str, suite: str) -> WatchRule | None:
    """The rule by which a change of a file affects a suite, None without one; the last match
    decides."""
    for rule in reversed(rules):
        if rule.covers(path) and rule.affects(suite):
            return None if rule.excludes else rule
    return None


def names_files(rules: Sequence[WatchRule]) -> bool:
    """Whether rules name the agent's files; rules that only exclude files do not."""
    return any(not rule.excludes for rule in rules)


def useful(rules: Sequence[WatchRule], paths: Collection[str]) -> tuple[WatchRule, ...]:
    """The rules that match at least one of the paths."""
    return tuple(rule for rule in rules if any(map(rule.covers, paths)))
