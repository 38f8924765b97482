"""Glob patterns over repository paths: `**` crosses folders, `*` does not, `{a,b}` is a choice,
hidden names count."""

import string
from collections.abc import Sequence

#: What a name may be written with, so that a glob gives none of it a meaning.
_LITERAL = frozenset(string.ascii_letters + string.digits + "._-")
#: What is no name in a path.
_NO_NAMES = frozenset(("", ".", ".."))


def matches(path: str, pattern: str) -> bool:
    """Whether a path (relative, POSIX) matches one pattern; a folder's name alone matches all below
    it."""
    pattern = pattern.removeprefix("./")
    found = _by_name(path, pattern)
    if found is not None:
        return found
    from wcmatch import (
        # late: it takes as long to load as a suite to be read, and most suites are found by their
        # names
        glob,
    )

    flags = glob.GLOBSTAR | glob.BRACE | glob.DOTGLOB | glob.FORCEUNIX
    return bool(glob.globmatch(path, [pattern, pattern.rstrip("/") + "/**"], flags=flags))


def _by_name(path: str, pattern: str) -> bool | None:
    """The same for the patterns `**/NAME` and `**/*END`, which the default ones are; None where it
    takes more to tell."""
    written = pattern.removeprefix("**/")
    end = written.removeprefix("*")
    names = path.split("/")
    if written == pattern or end in _NO_NAMES or not _LITERAL.issuperset(end):
        return None
    if not _NO_NAMES.isdisjoint(names) or "\n" in path:  # the library reads these in its own way
        return None
    return end in names if end == written else any(name.endswith(end) for name in names)


def selected(path: str, patterns: Sequence[str]) -> bool:
    """Whether a path matches a list of patterns in which `!pattern` takes out again; the last that
    matches decides."""
    chosen = False
    for pattern in patterns:
        if matches(path, pattern.removeprefix("!")):
            chosen = not pattern.startswith("!")
    return chosen
