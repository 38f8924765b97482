"""Files that a suite names."""

from dataclasses import dataclass


@dataclass(frozen=True)
class NamedFile:
    """A file that a suite names: `path` relative to the repository (POSIX), `role` in words
    (`prompt`, `judge script`, `test file`)."""

    path: str
    role: str
