"""Glob patterns over repository paths: `**` crosses folders, `*` does not, `{a,b}` is a choice, hidden names count."""

from collections.abc import Sequence

from wcmatch import glob

_FLAGS = glob.GLOBSTAR | glob.BRACE | glob.DOTGLOB | glob.FORCEUNIX


def matches(path: str, pattern: str) -> bool:
    """Whether a path (relative, POSIX) matches one pattern; a folder's name alone matches all below it."""
    pattern = pattern.removeprefix("./")
    return bool(glob.globmatch(path, [pattern, pattern.rstrip("/") + "/**"], flags=_FLAGS))


def selected(path: str, patterns: Sequence[str]) -> bool:
    """Whether a path matches a list of patterns in which `!pattern` takes out again; the last that matches decides."""
    chosen = False
    for pattern in patterns:
        if matches(path, pattern.removeprefix("!")):
            chosen = not pattern.startswith("!")
    return chosen
