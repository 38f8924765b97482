"""Stored replies: a folder with one JSON file for each request. It is the cache between runs, what
`run --record` writes, and what answers a run without keys."""

import asyncio
import contextlib
import functools
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from weakref import WeakValueDictionary

from pydantic import TypeAdapter

from agentevals_action.errors import GitError, InvalidInput, NotStored, OutputError
from agentevals_action.model.target import Calls, Request, Target
from agentevals_action.model.trace import Trace
from agentevals_action.settings import Settings
from agentevals_action.system.files.tree_files import write_file
from agentevals_action.system.git import GitRepository
from agentevals_action.system.redaction import without_secrets
from agentevals_action.targets.calls.description import (
    describe_request,
    digest,
    first_difference,
    plain,
    without_variables,
)
from agentevals_action.targets.prices import with_cost
from agentevals_action.targets.variables import Variables
from agentevals_action.validation.json_values import parse_json

#: What a run does with stored replies: it reads them; reads them and stores others; takes no other;
#: stores all that it gets.
Mode = Literal["read", "on", "replay", "record"]
#: At the end of a run: bytes of all files, and seconds for which an unused file is kept.
MAX_BYTES = 256 * 1024 * 1024
UNUSED_SECONDS = 30 * 24 * 60 * 60
_RECORD = "record it with `agentevals-action run --record`, or let a maintainer run the test"


async def check_cache(settings: Settings, workspace: Path, environ: Mapping[str, str]) -> None:
    """InvalidInput if the inputs name no folder of stored replies that the run needs, or if it is
    not a folder of the workspace.

    Attack: a change brings replies of its own, which would be its own verdict; with `replay`, the
    report names them."""
    if settings.cache == "off":
        return
    if settings.cache_dir is None:
        problem = f"input `cache`: `{settings.cache}` needs a folder"
        raise InvalidInput(problem, "name it in `cache-dir`")
    folder = workspace.resolve() / settings.cache_dir
    named = f"the folder of the stored replies, {settings.cache_dir},"
    if folder.resolve() != folder or (folder.exists() and not folder.is_dir()):
        problem = f"{named} is no folder, or a symbolic link leads to it"
        raise InvalidInput(problem, "name another one in `cache-dir`")
    try:
        repository = await GitRepository.open(workspace, environ=environ)
        is_tracked = await repository.tracks(folder)
    except GitError:  # without a repository there is no change
        return
    if is_tracked and settings.cache != "replay":
        raise InvalidInput(
            f"{named} is tracked by git, so that a change could bring its own replies",
            f"take it out (`git rm -r --cached {settings.cache_dir}`) and put it into .gitignore, "
            "or set `cache` to `replay`",
        )


@dataclass(frozen=True)
class StoredReply:
    """The content of a file: the test that made the request first (for the reader), the request as
    JSON data, and its reply."""

    test: str
    request: Mapping[str, Any]
    reply: Trace


class ReplyStore:
    """The replies in a folder. A damaged file is a miss. `notice` receives a sentence about it, and
    about what cannot be stored."""

    def __init__(self, folder: Path, notice: Callable[[str], None]) -> None:
        self._folder, self._notice = folder, notice

    def get(self, key: str) -> Trace | None:
        """The stored reply to the request with this digest; None if there is none."""
        file = self._folder / _file_name(key)
        stored = self._read(file)
        if stored is None or not stored.reply.has_answer:
            return None
        with contextlib.suppress(OSError):  # it only tells when the reply was last used
            os.utime(file)
        return replace(stored.reply, cached=True)

    def put(self, key: str, stored: StoredReply) -> None:
        """Stores a reply without secrets, in place of an earlier one, and without a cost that a
        price gave: the price may change."""
        reply = stored.reply
        if reply.cost_source != "reply":
            usage = replace(reply.usage, cost_usd=None)
            reply = replace(reply, usage=usage, cost_source="", cost_hint="")
        data = {
            "test": stored.test,
            "request": stored.request,
            "reply": _adapter(Trace).dump_python(reply, mode="json", exclude_defaults=True),
        }
        try:
            text = json.dumps(
                without_secrets(data), indent=1, ensure_ascii=False, allow_nan=False, default=plain
            )
            content = [text.encode("utf-8", "backslashreplace"), b"\n"]
            write_file(self._folder / _file_name(key), content)
        except OutputError as error:
            self._notice(f"A reply is not stored: {getattr(error.__cause__, 'strerror', error)}.")
        except (TypeError, ValueError, RecursionError) as error:
            self._notice(f"A reply is not stored: {error}.")

    def read_all(self) -> Sequence[StoredReply]:
        """All replies, in the order of the files."""
        files = sorted(self._folder.glob("*/*.json"))
        return list(filter(None, map(self._read, files)))

    def _read(self, file: Path) -> StoredReply | None:
        try:
            stored: StoredReply = _adapter(StoredReply).validate_python(
                parse_json(file.read_bytes())
            )
            return stored
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            self._notice(f"The stored reply {file.name} is damaged and is not used.")
            return None

    def prune(self, max_bytes: int = MAX_BYTES, unused_seconds: float = UNUSED_SECONDS) -> None:
        """Deletes the files that were not used for so long, then the longest unused ones beyond
        a size in bytes."""
        files = []
        for file in self._folder.glob("*/*.json"):
            with contextlib.suppress(OSError):  # another process deletes, too
                facts = file.stat()
                files.append((facts.st_mtime, facts.st_size, file))
        total, oldest = 0, time.time() - unused_seconds
        for used, size, file in sorted(files, reverse=True):
            total += size
            if total > max_bytes or used < oldest:
                with contextlib.suppress(OSError):
                    file.unlink()


@functools.cache
def _adapter(type_: type[Any]) -> TypeAdapter[Any]:
    """A cached adapter: to make one takes 10 ms, and most runs store nothing."""
    return TypeAdapter(type_)


def _file_name(key: str) -> str:
    return f"{key[:2]}/{key}.json"


class StoredCalls(Calls):
    """Answers the requests of a run from the store in the folder `path` of the repository `root`,
    or passes them on to `calls`, by the `mode`. Only the requests to models are stored.
    Deterministic targets answer themselves. `variables` returns what `${{ }}` in targets may name.

    With `replay`, each tree answers from its own folder, as it was before the first program
    started."""

    def __init__(
        self,
        calls: Calls,
        variables: Variables,
        mode: Mode,
        root: Path,
        path: str,
        notice: Callable[[str], None],
    ) -> None:
        self._calls, self._variables, self._mode = calls, variables, mode
        self._path, self._notice = path, notice
        self._store = ReplyStore(root.resolve() / path, notice)
        self._recorded: set[str] = set()
        self._replayed: dict[Path, Mapping[str, StoredReply]] = {}
        #: By the digest of a request that is in flight.
        self._locks = WeakValueDictionary[str, asyncio.Lock]()

    def load(self, root: Path) -> None:
        """Reads what answers the requests of the suites in the tree `root`.

        Attack: `prepare` or a hook of a change writes the replies that pass."""
        if self._mode == "replay" and root not in self._replayed:
            stored = ReplyStore(root / self._path, self._notice).read_all()
            self._replayed[root] = {
                digest(without_variables(reply.request)): reply for reply in stored
            }

    async def complete(self, target: Target, request: Request) -> Trace:
        """One answer of a target. Raises NotStored in a replay, else as the calls do."""
        if target.deterministic:
            return await self._calls.complete(target, request)
        try:
            described = describe_request(target, request, self._variables)
        except ValueError as reason:
            if self._mode == "replay":
                problem = f"a request to `{target.name}` cannot be replayed: {reason}"
                raise NotStored(problem) from None
            if self._mode == "record":
                self._notice(f"Replies of the target `{target.name}` are not stored: {reason}.")
            return await self._calls.complete(target, request)
        test = f"{request.suite}: {request.eval_id}"
        if self._mode == "replay":
            trace = self._replay(target, request.root, test, without_variables(described))
            return with_cost(trace, target)
        key = digest(described)
        # Head and base ask the same at the same moment: the second finds the reply of the first.
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            is_usable = self._mode != "record" or key in self._recorded
            if is_usable and (reply := self._store.get(key)):
                return with_cost(without_secrets(reply), target)
            trace = await self._calls.complete(target, request)
            if self._mode != "read" and not trace.cached:
                self._store.put(key, StoredReply(test, described, trace))
                self._recorded.add(key)
            return trace

    def _replay(self, target: Target, root: Path, test: str, described: Mapping[str, Any]) -> Trace:
        stored = self._replayed.get(root, {})
        match = stored.get(digest(described))
        if match is not None and match.reply.has_answer:
            return replace(match.reply, cached=True)
        of_test = [reply for reply in stored.values() if reply.test == test]
        others = [without_variables(reply.request) for reply in of_test or stored.values()]
        difference = first_difference(described, others) or "nothing is stored there"
        problem = f"a request to `{target.name}` is not stored in {self._path}: {difference}"
        raise NotStored(problem, _RECORD)

    async def close(self) -> None:
        """Deletes what was not used for a long time."""
        if self._mode == "on":
            await asyncio.to_thread(self._store.prune)
