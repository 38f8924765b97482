"""Replies kept between runs, in one SQLite file that several processes may share. A problem with
the file costs calls, never a run."""

import asyncio
import json
import sqlite3
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from agentevals_action.errors import GitError, InvalidInput
from agentevals_action.model.trace import Trace
from agentevals_action.model.validation.json_values import parse_json
from agentevals_action.settings import Settings
from agentevals_action.system.git import GitRepository

T = TypeVar("T")

#: The file in the cache's folder.
FILENAME = "agentevals-replies.sqlite"
#: Characters of a stored reply, and of its decompressed text, at most.
REPLY_LIMIT = 16 * 1024 * 1024

_MIN_COMPRESSED = 512
_PLAIN, _COMPRESSED = b"j", b"z"
_TRACE = TypeAdapter(Trace)

#: By name, exactly as SQLite keeps them: a file with other tables, a trigger or a view was not
#: written by this version.
_TABLES = {
    "replies": "CREATE TABLE replies (digest TEXT PRIMARY KEY, value BLOB NOT NULL, "
    "used INTEGER NOT NULL)",
}
#: In this order: `auto_vacuum` applies only to a new file. A killed process or machine loses at
#: most the last replies.
_PRAGMAS = (
    "PRAGMA auto_vacuum = INCREMENTAL",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
)
#: Deletes rows that were not used since `oldest` (seconds since 1970), then the least recently used
#: ones beyond `size` bytes. A row takes about 200 bytes in addition to its value.
_PRUNE = (
    "DELETE FROM replies WHERE used < :oldest",
    "DELETE FROM replies WHERE rowid IN (SELECT id FROM (SELECT rowid AS id, sum(length(value) + "
    "200) OVER (ORDER BY used DESC, rowid DESC) AS total FROM replies) WHERE total > :size)",
)
_DAY = 24 * 60 * 60
_PAUSE = 0.05  # seconds between two attempts to open a file that another process creates


@dataclass(frozen=True)
class CacheLimits:
    """The size of the cache at the end of a run (bytes of replies), the days that an unused reply
    is kept, and the seconds to wait for another process that writes."""

    size: int = 256 * 1024 * 1024
    unused_days: float = 30
    patience: float = 5.0


async def check_cache(settings: Settings, folder: Path, environ: Mapping[str, str]) -> None:
    """InvalidInput if there is no folder of the cache, if it leads out of the workspace or comes
    with the change, or if there are no cassettes to replay."""
    if settings.cache in ("read", "on") and settings.cache_dir is None:
        raise InvalidInput(
            f"input `cache`: `{settings.cache}` needs a folder", "name it in `cache-dir`"
        )
    if settings.cache == "replay" and settings.cassettes is None:
        raise InvalidInput(
            "input `cache`: `replay` needs a folder of cassettes", "name it in `cassettes`"
        )
    if settings.cache not in ("read", "on") or settings.cache_dir is None:
        return
    workspace = folder.resolve()
    try:
        repository = await GitRepository.open(folder, environ=environ)
        tracked = await repository.tracks(workspace / settings.cache_dir)
    except GitError:  # without a repository there is no change
        tracked = False
    check_folder(workspace / settings.cache_dir, workspace, tracked)


def check_folder(folder: Path, workspace: Path, tracked: bool) -> None:
    """InvalidInput if a folder must not be the cache's; it need not exist. `tracked`: git tracks a
    file in it.

    The workspace contains an untrusted change: a cache in the change would be the change's own
    verdict, and a link would redirect what is written."""
    another = "name another one in `cache-dir`"
    inside = folder.is_relative_to(workspace) and ".." not in folder.relative_to(workspace).parts
    if not inside or folder == workspace:
        raise InvalidInput(
            f"the cache's folder {folder} is not a folder inside the workspace",
            "name a folder of its own below the workspace in `cache-dir`",
        )
    shown, file = folder.relative_to(workspace), folder / FILENAME
    steps = [workspace.joinpath(*shown.parts[:length]) for length in range(1, len(shown.parts) + 1)]
    link = next((step for step in (*steps, *_files(file)) if step.is_symlink()), None)
    no_folder = any(step.exists() and not step.is_dir() for step in steps)
    if ".git" in shown.parts:
        problem, advice = "is inside git's own", another
    elif tracked:
        problem = "is tracked by git, so that a change could bring its own replies"
        advice = f"take it out (`git rm -r --cached {shown}`), put it into .gitignore, or {another}"
    elif link is not None:
        problem = f"has a symbolic link in it ({link.relative_to(workspace)})"
        advice = f"remove the link, or {another}"
    elif no_folder or (file.exists() and not file.is_file()):
        problem = f"cannot be used: its path is not a folder, or its {FILENAME} is not a file"
        advice = another
    else:
        return
    raise InvalidInput(f"the cache's folder {shown} {problem}", advice)


def _files(file: Path) -> Sequence[Path]:
    """The database file, and those that SQLite creates next to it while it is open."""
    return file, *(file.with_name(f"{file.name}-{end}") for end in ("wal", "shm", "journal"))


class Cache:
    """Stored replies in a folder (absolute), `read` or `on`. The file is opened at the first use;
    `notice` receives a sentence if it cannot be used: a damaged file is deleted, one that cannot be
    written is read, one that cannot be read is ignored.

    All work on the file runs in one thread, so that the event loop does not wait for another
    process."""

    def __init__(
        self,
        folder: Path,
        mode: str,
        notice: Callable[[str], None],
        limits: CacheLimits | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.hits = self.misses = self.stored = 0
        self._folder, self._resolved = folder, folder.resolve()
        self._file = folder / FILENAME
        self._writable, self._usable, self._replaced = mode == "on", True, False
        self._notice, self._limits, self._clock = notice, limits or CacheLimits(), clock
        self._thread = ThreadPoolExecutor(1, "cache")
        self._database: sqlite3.Connection | None = None
        self._used: set[str] = set()

    async def get(self, key: str) -> Trace | None:
        """The stored reply, marked as cached; None if there is none."""
        trace = await self._run(lambda database: _read_reply(database, key), None)
        if trace is None:
            self.misses += 1
        else:
            self.hits += 1
            self._used.add(key)
        return trace

    async def put(self, key: str, trace: Trace) -> None:
        """Stores a reply, without secrets, and replaces an earlier one; not a cached one."""
        if not self._writable or trace.cached:
            return
        text = _to_text(trace)
        if text is None:
            self._notice("A reply is too large or too deep to be stored in the cache.")
        else:
            row = (key, compress(text), int(self._clock()))
            self.stored += await self._insert("replies VALUES (?, ?, ?)", [row])

    async def close(self) -> None:
        """Deletes old and excess rows and leaves one file; the next use opens it again."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)

    async def _insert(self, into: str, rows: Sequence[Sequence[Any]]) -> bool:
        def insert(database: sqlite3.Connection) -> bool:
            database.executemany(f"INSERT OR REPLACE INTO {into}", rows)
            return True

        return await self._run(insert, False, writes=True)

    async def _run(
        self, work: Callable[[sqlite3.Connection], T], otherwise: T, *, writes: bool = False
    ) -> T:
        """The result of `work`, or `otherwise` if the cache cannot be used for it. After an error a
        damaged file is replaced, and one that cannot be written is only read."""

        def attempt() -> T:
            while self._usable and (self._writable or not writes):
                try:
                    self._database = self._database or self._connect()
                    return otherwise if self._database is None else work(self._database)
                except (sqlite3.Error, OSError) as error:
                    self._handle(error)
            return otherwise

        return await asyncio.get_running_loop().run_in_executor(self._thread, attempt)

    def _handle(self, error: sqlite3.Error | OSError) -> None:
        reason, damaged = _reason(error), _is_damage(error)
        if damaged and self._writable and not self._replaced:
            self._disconnect()
            self._replaced = True
            try:
                for path in _files(self._file):
                    path.unlink(missing_ok=True)
            except OSError as refusal:
                self._give_up(f"is damaged ({reason}), and cannot be removed ({_reason(refusal)})")
                return
            self._notice(
                f"The cache was damaged ({reason}) and is deleted; this run starts an empty one."
            )
        elif damaged or not self._writable:
            self._give_up(f"{'is damaged' if damaged else 'cannot be used'} ({reason})")
        else:
            self._writable = False
            self._notice(f"The cache cannot be written ({reason}); replies are only read from it.")

    def _give_up(self, problem: str) -> None:
        self._usable = False
        self._disconnect()
        self._notice(f"The cache {problem}; this run goes without it.")

    def _disconnect(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def _connect(self) -> sqlite3.Connection | None:
        """The open database; None if it does not exist and only replies of it are read."""
        linked = any(path.is_symlink() for path in _files(self._file))
        if linked or self._folder.resolve() != self._resolved:
            raise OSError("a symbolic link leads elsewhere")
        if self._writable:
            self._folder.mkdir(parents=True, exist_ok=True)
        elif not self._file.is_file():
            self._usable = False
            return None
        deadline = time.monotonic() + self._limits.patience
        while True:
            try:
                return self._open()
            except sqlite3.Error as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE)

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(
            f"{self._file.as_uri()}?mode={'rwc' if self._writable else 'ro'}",
            uri=True,
            isolation_level=None,
            timeout=self._limits.patience,
            check_same_thread=False,  # one thread at a time; a finalizer may run in another
        )
        try:
            # The file may come from anybody: SQL in it is not run.
            database.execute("PRAGMA trusted_schema = OFF")
            if self._writable:
                for pragma in _PRAGMAS:
                    database.execute(pragma).fetchall()
                database.execute("BEGIN IMMEDIATE")
                if not database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall():
                    for table in _TABLES.values():
                        database.execute(table)
                database.execute("COMMIT")
            schema = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
            if dict(database.execute(schema).fetchall()) != _TABLES:
                raise sqlite3.OperationalError("it has other tables")
        except BaseException:
            database.close()
            raise
        return database

    def _close(self) -> None:
        database, self._database = self._database, None
        if database is None:
            return
        try:
            if self._writable:
                self._tidy(database)
        except (sqlite3.Error, OSError) as error:
            self._notice(
                f"The old replies of the cache could not be deleted at the end ({_reason(error)})."
            )
        finally:
            database.close()

    def _tidy(self, database: sqlite3.Connection) -> None:
        now = int(self._clock())
        used, self._used = self._used, set()
        database.execute("BEGIN IMMEDIATE")
        database.executemany(
            "UPDATE replies SET used = ? WHERE digest = ?", [(now, digest) for digest in used]
        )
        oldest = int(now - self._limits.unused_days * _DAY)
        for command in _PRUNE:
            database.execute(command, {"oldest": oldest, "size": self._limits.size})
        database.execute("COMMIT")
        database.execute("PRAGMA incremental_vacuum").fetchall()
        database.execute("PRAGMA busy_timeout = 0")
        try:
            database.execute("PRAGMA journal_mode = DELETE").fetchall()
        except sqlite3.OperationalError as error:
            if not _is_busy(error):
                raise
            # Another process has the file open: the last one to close it merges the journal.


def _read_reply(database: sqlite3.Connection, key: str) -> Trace | None:
    # As a blob: another program may have stored a text.
    command = "SELECT CAST(value AS BLOB) FROM replies WHERE digest = ? AND length(value) <= ?"
    row = database.execute(command, (key, REPLY_LIMIT)).fetchone()
    return _decompress(row[0]) if row else None


def _to_text(trace: Trace) -> str | None:
    """A reply as JSON in ASCII; None if it is too large, too deep, or not JSON."""
    try:
        data = _TRACE.dump_python(replace(trace, cached=False), mode="json")
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError):
        return None
    return text if len(text) <= REPLY_LIMIT else None


def compress(text: str) -> bytes:
    """The stored form of a JSON text: compressed if that is shorter."""
    data = text.encode("ascii")
    small = zlib.compress(data) if len(data) > _MIN_COMPRESSED else data
    return _COMPRESSED + small if len(small) < len(data) else _PLAIN + data


def _decompress(value: bytes) -> Trace | None:
    """The reply, marked as cached; None if the bytes do not contain one. At most `REPLY_LIMIT`
    bytes are decompressed."""
    try:
        data = value[1:]
        if value[:1] == _COMPRESSED:
            decompressor = zlib.decompressobj()
            data = decompressor.decompress(data, REPLY_LIMIT)
            if not decompressor.eof:
                return None
        elif value[:1] != _PLAIN:
            return None
        trace = _TRACE.validate_python(parse_json(data))
    except (zlib.error, ValueError):
        return None
    return replace(trace, cached=True)


def _is_damage(error: Exception) -> bool:
    """Whether the file is broken or not a database; not whether it is busy, full or read-only."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # raised here, or by Python: a definition in the file is not text
        return isinstance(error, sqlite3.OperationalError)
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _is_busy(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
