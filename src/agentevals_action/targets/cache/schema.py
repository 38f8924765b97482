"""What the cache's file looks like, and which files and folders may not be it."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

#: By name, exactly as SQLite keeps them: a file with anything else in it (a trigger, a view,
#: another version's tables) is not ours.
TABLES = {
    "replies": "CREATE TABLE replies (digest TEXT PRIMARY KEY, seal BLOB NOT NULL, value BLOB NOT NULL, used INTEGER NOT NULL)",
    "runs": "CREATE TABLE runs (suite TEXT PRIMARY KEY, attempts INTEGER NOT NULL, cost_usd REAL, tokens INTEGER, "
    "duration_ms REAL NOT NULL, used INTEGER NOT NULL)",
}
#: In this order: pages can be given back only by a file that was made so. A killed process or
#: machine loses at most the last replies.
PAGES = (
    "PRAGMA auto_vacuum = INCREMENTAL",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
)
#: What is not used since `oldest` (seconds since 1970) goes, then what was used least recently
#: beyond `size` bytes.
PRUNE = (
    "DELETE FROM replies WHERE used < :oldest",
    "DELETE FROM runs WHERE used < :oldest",
    # A row takes about 200 bytes beside its value.
    "DELETE FROM replies WHERE rowid IN (SELECT id FROM (SELECT rowid AS id, "
    "sum(length(value) + 200) OVER (ORDER BY used DESC, rowid DESC) AS total FROM replies) WHERE total > :size)",
)


class Damaged(Exception):
    """A file that is no database, is broken, or is not ours."""


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite says that the file is broken, or is none of its own; not that it is busy, full
    or refused."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # Python's own word: a name or a definition in the file is no text
        return isinstance(error, sqlite3.OperationalError)
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def siblings(file: Path) -> Sequence[Path]:
    """The database's file, and those that SQLite puts beside it while it is open."""
    return (
        file,
        *(file.with_name(f"{file.name}-{ending}") for ending in ("wal", "shm", "journal")),
    )


def folder_error(
    folder: Path, workspace: Path, file: Path, tracked: bool
) -> tuple[str, str] | None:
    """What is wrong with a folder for the cache, and what to do about it; None when nothing is."""
    if (
        not folder.is_relative_to(workspace)
        or folder == workspace
        or ".." in folder.relative_to(workspace).parts
    ):
        return (
            f"{folder} is no folder inside the workspace",
            "name a folder of its own below the workspace in `cache-dir`",
        )
    shown = folder.relative_to(workspace)
    if ".git" in shown.parts:
        return f"{shown} lies in git's own", "name another one in `cache-dir`"
    if tracked:
        return (
            f"{shown} is tracked by git, so that a change could bring its own replies",
            f"take it out (`git rm -r --cached {shown}`), put it into .gitignore, or name another one in `cache-dir`",
        )
    steps = [workspace.joinpath(*shown.parts[:length]) for length in range(1, len(shown.parts) + 1)]
    if link := next((step for step in (*steps, *siblings(file)) if step.is_symlink()), None):
        return (
            f"{shown} has a symbolic link in it ({link.relative_to(workspace)})",
            "remove the link, or name another one in `cache-dir`",
        )
    if any(step.exists() and not step.is_dir() for step in steps) or (
        file.exists() and not file.is_file()
    ):
        return (
            f"{shown} cannot be used: something that is no folder or no file stands in its place",
            "name another one in `cache-dir`",
        )
    return None
