"""Replies kept between runs, in one SQLite file that several processes may share; whatever is wrong
with it costs calls, never a run."""

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agentevals_action.errors import InvalidInput
from agentevals_action.model.trace import Trace
from agentevals_action.results.estimate import Figures
from agentevals_action.targets.cache import rows as cache_rows
from agentevals_action.targets.cache.keys import Key
from agentevals_action.targets.cache.schema import (
    PAGES,
    PRUNE,
    TABLES,
    Damaged,
    folder_error,
    is_damage,
    siblings,
)

if TYPE_CHECKING:
    from aiosqlite import Connection

T = TypeVar("T")

#: The one file in the cache's folder.
FILENAME = "agentevals-replies.sqlite"
_DAY = 24 * 60 * 60
_PAUSE = 0.05  # seconds between two tries to open what another process just makes


@dataclass(frozen=True)
class Limits:
    """How large the cache may be at the end of a run (bytes of replies), how long a reply lasts
    that nobody asks for (days), and how long (seconds) another process that writes is waited
    for."""

    size: int = 256 * 1024 * 1024
    unused_days: float = 30
    patience: float = 5.0


def open_cache(
    folder: Path,
    mode: str,
    notice: Callable[[str], None],
    limits: Limits | None = None,
    clock: Callable[[], float] = time.time,
) -> "Cache":
    """A cache in a folder (absolute), `read` or `on`; cheap, since the file is opened when it is
    first used. `notice` is told in a sentence when it cannot be used as it should: a damaged one is
    dropped, one that cannot be written is read, one that cannot be read is left alone."""
    return Cache(folder, mode, notice, limits or Limits(), clock)


def check_folder(folder: Path, workspace: Path, tracked: bool) -> None:
    """InvalidInput when a folder must not be the cache's; `tracked` says that git tracks something
    in it. It need not exist yet.

    The folder lies in the workspace, where a stranger's change is checked out: a cache that comes
    with the change would be the change's own verdict, and a link would lead our writing elsewhere.
    """
    if problem := folder_error(folder, workspace, folder / FILENAME, tracked):
        raise InvalidInput(f"the cache's folder {problem[0]}", problem[1])


class Cache:
    """Stored replies. `hits`, `misses` and `stored` count. `leaks` tells whether a text holds a
    secret: such a reply is not stored.

    Each row is sealed with the secrets of its target, which no child of ours is given unless the
    workflow says so: code of the pull request that writes into the file while we run cannot forge a
    judge's reply. A target without any secret (a local server) has no such seal, and one whose key
    is handed to children none that holds against them."""

    def __init__(
        self,
        folder: Path,
        mode: str,
        notice: Callable[[str], None],
        limits: Limits,
        clock: Callable[[], float],
    ) -> None:
        self.hits = self.misses = self.stored = 0
        self.leaks: Callable[[str], bool] = lambda _text: False
        self._folder, self._place = folder, folder.resolve()
        self._file = folder / FILENAME
        self._writes = mode == "on"
        self._usable = True
        self._notice, self._limits, self._clock = notice, limits, clock
        self._database: Connection | None = None
        self._used: set[str] = set()
        # One at a time: the connection has one thread anyway, and a file that is dropped is dropped
        # for all.
        self._lock = asyncio.Lock()

    async def get(self, key: Key) -> Trace | None:
        """The stored reply, marked as cached; None when there is none, or one that somebody else
        wrote."""

        async def read(database: "Connection") -> Trace | None:
            # As blobs: what a stranger put there is no text until it is known to be ours.
            columns, few = "CAST(seal AS BLOB), CAST(value AS BLOB)", "length(value) <= ?"
            rows = await _all(
                database,
                f"SELECT {columns} FROM replies WHERE digest = ? AND {few}",  # noqa: S608
                key.digest,
                cache_rows.LIMIT,
            )
            if not rows or not all(isinstance(part, bytes) for part in rows[0]):
                return None
            mark, value = rows[0]
            return cache_rows.unpacked(value) if cache_rows.is_sealed(key, value, mark) else None

        trace = await self._with(read, None)
        if trace is None:
            self.misses += 1
        else:
            self.hits += 1
            self._used.add(key.digest)
        return trace

    async def put(self, key: Key, trace: Trace) -> None:
        """Stores a reply, in the place of any other for the same request; not one with a secret in
        it, nor one out of a cache."""
        if not self._writes or trace.cached:
            return
        text = cache_rows.text_of(trace)
        if text is None or self.leaks(text):
            what = (
                "is too large or too deep to be stored"
                if text is None
                else "holds a secret, and is not stored"
            )
            self._notice(f"A reply {what} in the cache.")
            return
        value = cache_rows.packed(text)
        row = (key.digest, cache_rows.seal(key, value), value, int(self._clock()))

        async def write(database: "Connection") -> bool:
            await _all(
                database,
                "INSERT OR REPLACE INTO replies (digest, seal, value, used) VALUES (?, ?, ?, ?)",
                *row,
            )
            return True

        self.stored += await self._with(write, False, writes=True)

    async def remember(self, figures: Mapping[str, Figures]) -> None:
        """Keeps what a run took, by suite path, for the next one's estimate; suites that are not in
        it keep what they have."""
        now = int(self._clock())
        rows = [
            (path, one.attempts, one.cost_usd, one.tokens, one.duration_ms, now)
            for path, one in figures.items()
        ]

        async def write(database: "Connection") -> None:
            await database.executemany(
                "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?)", rows
            )

        if rows:
            await self._with(write, None, writes=True)

    async def last(self) -> Mapping[str, Figures]:
        """What was remembered, by suite path. It is not sealed: fit for an estimate, and for
        nothing that is decided."""

        async def read(database: "Connection") -> Mapping[str, Figures]:
            columns = "CAST(suite AS BLOB), attempts, cost_usd, tokens, duration_ms"
            rows = await _all(
                database,
                f"SELECT {columns} FROM runs ORDER BY used DESC LIMIT 10000",  # noqa: S608
            )
            read = ((row[0], _figures(*row[1:])) for row in rows)
            return {
                path.decode("utf-8", "replace"): figures
                for path, figures in read
                if figures and isinstance(path, bytes)
            }

        return await self._with(read, {})

    async def close(self) -> None:
        """Lets go what is old or too much, and leaves one whole file; the next use opens it
        again."""
        async with self._lock:
            database, self._database = self._database, None
            if database is None:
                return
            try:
                if self._writes:
                    await self._put_in_order(database)
            except (sqlite3.Error, OSError) as error:
                self._notice(f"The cache could not be put in order at the end ({_words(error)}).")
            finally:
                await database.close()

    async def _put_in_order(self, database: "Connection") -> None:
        now = int(self._clock())
        used, self._used = self._used, set()
        await database.execute("BEGIN IMMEDIATE")
        await database.executemany(
            "UPDATE replies SET used = ? WHERE digest = ?", [(now, digest) for digest in used]
        )
        oldest = int(now - self._limits.unused_days * _DAY)
        for command in PRUNE:
            await database.execute(command, {"oldest": oldest, "size": self._limits.size})
        await database.execute("COMMIT")
        await _all(database, "PRAGMA incremental_vacuum")
        await _all(database, "PRAGMA busy_timeout = 0")
        try:
            await _all(database, "PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as error:
            if not _is_busy(error):
                raise
            # Another process has it open still: the last one to close it folds the journal in.

    async def _with(
        self, work: "Callable[[Connection], Awaitable[T]]", otherwise: T, *, writes: bool = False
    ) -> T:
        """What the work gives, or `otherwise` when the cache cannot be used for it."""
        async with self._lock:
            database = await self._opened()
            if database is None or (writes and not self._writes):
                return otherwise
            try:
                return await work(database)
            except sqlite3.Error as error:
                if is_damage(error):
                    await self._drop(error)
                elif writes:
                    self._writes = False
                    self._notice(
                        f"The cache cannot be written any more ({_words(error)}); replies are only read from it."
                    )
                else:
                    await self._give_up(f"cannot be read ({_words(error)})")
                return otherwise

    async def _opened(self) -> "Connection | None":
        """The open database, None when there is none to be used. Damage is mended once; then it is
        left alone."""
        for _ in range(2):
            if self._database is not None or not self._usable:
                break
            try:
                self._database = await self._open()
            except Damaged as error:
                await self._drop(error)
            except (sqlite3.Error, OSError) as error:
                if not self._writes:
                    await self._give_up(f"cannot be used ({_words(error)})")
                    break
                self._writes = False
                self._notice(
                    f"The cache cannot be written ({_words(error)}); replies are only read from it."
                )
        return self._database

    async def _open(self) -> "Connection | None":
        if self._folder.resolve() != self._place or any(
            path.is_symlink() for path in siblings(self._file)
        ):
            raise OSError("a symbolic link leads elsewhere")
        if self._writes:
            self._folder.mkdir(parents=True, exist_ok=True)
        elif not self._file.is_file():
            self._usable = False
            return None
        until = time.monotonic() + self._limits.patience
        while True:
            try:
                return await self._connect()
            except sqlite3.Error as error:
                if is_damage(error):
                    raise Damaged(str(error)) from error
                if not _is_busy(error) or time.monotonic() > until:
                    raise
                await asyncio.sleep(_PAUSE)

    async def _connect(self) -> "Connection":
        import aiosqlite  # late: a run without a cache needs none

        mode = "rwc" if self._writes else "ro"
        database = await aiosqlite.connect(
            f"{self._file.as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            timeout=self._limits.patience,
        )
        try:
            # What is in the file may be anybody's: it runs no code of its own.
            await _all(database, "PRAGMA trusted_schema = OFF")
            if self._writes:
                for pragma in PAGES:
                    await _all(database, pragma)
                await database.execute("BEGIN IMMEDIATE")
                if not await _all(database, "SELECT 1 FROM sqlite_master LIMIT 1"):
                    for table in TABLES.values():
                        await database.execute(table)
                await database.execute("COMMIT")
            if (
                dict(
                    await _all(
                        database,
                        "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'",
                    )
                )
                != TABLES
            ):
                raise Damaged("it has other tables")
        except BaseException:
            await database.close()
            raise
        return database

    async def _drop(self, error: Exception) -> None:
        database, self._database = self._database, None
        if database is not None:
            await database.close()
        if not self._writes:
            await self._give_up(f"is damaged ({_words(error)})")
            return
        try:
            for path in siblings(self._file):
                path.unlink(missing_ok=True)
        except OSError as refusal:
            await self._give_up(
                f"is damaged ({_words(error)}), and cannot be removed ({_words(refusal)})"
            )
        else:
            self._notice(
                f"The cache was damaged ({_words(error)}) and is dropped; this run begins an empty one."
            )

    async def _give_up(self, why: str) -> None:
        self._usable = self._writes = False
        database, self._database = self._database, None
        if database is not None:
            await database.close()
        self._notice(f"The cache {why}; this run goes without it.")


async def _all(database: "Connection", command: str, *values: Any) -> list[Any]:
    return list(await database.execute_fetchall(command, values))


def _figures(attempts: Any, cost_usd: Any, tokens: Any, duration_ms: Any) -> Figures | None:
    try:
        return Figures(attempts, cost_usd, tokens, duration_ms)
    except (TypeError, ValueError):
        return None


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    )


def _words(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
