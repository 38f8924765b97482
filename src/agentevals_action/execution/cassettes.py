"""Records the requests of a run with their replies in cassettes, and answers them from cassettes
without a call."""

import asyncio
import functools
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentevals_action.errors import AttemptError, NotRecorded
from agentevals_action.execution.request_difference import first_difference
from agentevals_action.formatting import counted, plural
from agentevals_action.model.result import TestResult
from agentevals_action.model.suite import Suite
from agentevals_action.model.target import Target
from agentevals_action.model.trace import Trace
from agentevals_action.suites.cassette_file import (
    CassetteFolder,
    Exchange,
    cassette_text,
    read_cassette,
    reply_data,
)
from agentevals_action.suites.files.diagnostics import Findings
from agentevals_action.system.files.tree_files import OutputFolder
from agentevals_action.system.redaction import Redactor, redact_record
from agentevals_action.targets.base import Calls, Request
from agentevals_action.targets.cache.keys import CacheKeys

#: Cassettes in memory at once.
_IN_MEMORY = 1_000
#: Ids of tests in a sentence.
_IN_SENTENCE = 10
_RECORD = "record it with `agentevals-action run --record`, or let a maintainer run the test"


class _Requests:
    """Describes the requests of a run. An agent may remember a conversation: a turn depends on all
    requests before it."""

    def __init__(self, keys: CacheKeys) -> None:
        self._keys = keys
        self._before: dict[str, str] = {}  # by conversation, the digest of its requests so far

    def describe(self, target: Target, request: Request) -> dict[str, Any]:
        """The request as JSON data. ValueError with the reason if it cannot be described."""
        described = self._keys.describe(target, request)
        name = request.conversation_id
        if name is not None and not target.options.is_defined:
            before = self._before.get(name)
            if before is not None:
                described["after"] = before
            digest = hashlib.sha256(json.dumps(described).encode("ascii")).hexdigest()
            self._before[name] = digest[:16]
        return described


@dataclass
class _Recording:
    """What a test asked so far, by the request as JSON: a sort key, the request and the reply."""

    replies: dict[str, tuple[tuple[Any, ...], dict[str, Any], Trace]] = field(default_factory=dict)
    locks: dict[str, asyncio.Lock] = field(default_factory=dict)


class RecordedCalls(Calls):
    """Passes requests on to `calls` and records them for the cassettes in `folder`. Deterministic
    targets need no cassette. The same request of a sample is made once, as with the cache."""

    def __init__(
        self, calls: Calls, keys: CacheKeys, folder: CassetteFolder, notice: Callable[[str], None]
    ) -> None:
        self._calls, self._requests = calls, _Requests(keys)
        self._folder, self._notice = folder, notice
        self._recordings: dict[tuple[str, str], _Recording] = {}
        self.redactor = Redactor(())
        self.written = 0

    async def complete(self, target: Target, request: Request) -> Trace:
        """One answer of a target without secrets, as it is recorded: what judges are asked about it
        is the same in the replay. Raises AttemptError."""
        if target.options.deterministic:
            return await self._calls.complete(target, request)
        try:
            described = self._requests.describe(target, request)
        except ValueError as reason:
            self._notice(f"Replies of the target `{target.name}` are not recorded: {reason}.")
            return await self._calls.complete(target, request)
        recording = self._recordings.setdefault((request.suite, request.eval_id), _Recording())
        text = json.dumps(described)
        async with recording.locks.setdefault(text, asyncio.Lock()):
            if text in recording.replies:
                return replace(recording.replies[text][2], cached=True)
            if redact_record(described, self.redactor) != described:
                self._notice(f"A request to `{target.name}` has a secret and cannot be replayed.")
            trace = redact_record(await self._calls.complete(target, request), self.redactor)
            order = (request.attempt, not request.question, request.repeat, text)
            recording.replies[text] = order, described, trace
            return trace

    def write(self, result: TestResult) -> None:
        """Writes the cassette of a test that is done, without secrets. One that ended in an error
        keeps the cassette that it has. Raises OutputError."""
        suite, test = result.eval_path, result.eval_id
        recording = self._recordings.pop((suite, test), None)
        if recording is None:
            return
        if result.error is not None:
            self._notice("A test that ended in an error is not recorded.")
            return
        exchanges = sorted(recording.replies.values(), key=lambda one: one[0])
        try:
            data = [(request, reply_data(trace)) for _, request, trace in exchanges]
            text = cassette_text(suite, test, redact_record(data, self.redactor))
        except ValueError as reason:
            self._notice(f"The test `{test}` is not recorded: {reason}.")
            return
        path = self._folder.file_of(suite, test)
        folder = OutputFolder(self._folder.root, str(path.parent))
        folder.write(path.name, [text.encode("utf-8")])
        self.written += 1


class ReplayedCalls(Calls):
    """Answers requests from the cassettes in the folder `path` of the repository that a suite is
    in; deterministic targets answer themselves (`calls`). No other target is called. `head` is the
    tree of head."""

    def __init__(self, calls: Calls, keys: CacheKeys, path: str, head: Path) -> None:
        self._calls, self._requests, self._path = calls, _Requests(keys), path
        self._head = head.resolve()
        self._read = functools.lru_cache(_IN_MEMORY)(self._read_cassette)
        self._trusted: tuple[CassetteFolder | None, ...] = ()
        #: Of each test, the digest of its cassette; None if it has none.
        self._recorded: dict[tuple[CassetteFolder, str, str], str | None] = {}
        self._not_recorded: dict[str, dict[str, None]] = {}

    def trust_only(self, folder: CassetteFolder | None) -> None:
        """From now on answers from this folder alone, and nothing if it is None.

        Attack: a stranger writes the replies that pass into the cassettes of a pull request."""
        self._trusted = (folder,)

    def load(self, suite: Suite) -> None:
        """Notes the cassettes of a suite's tests, before the first program starts.

        Attack: `prepare` or a hook of a change writes the replies that pass, so that the change
        itself edits no cassette."""
        if (folder := self._folder_of(suite.root)) is None:
            return
        for test in suite.tests:
            content = folder.content(suite.path, test.id, Findings())
            self._recorded[folder, suite.path, test.id] = _digest(content)

    def _folder_of(self, root: Path) -> CassetteFolder | None:
        return self._trusted[0] if self._trusted else CassetteFolder(root, self._path)

    async def complete(self, target: Target, request: Request) -> Trace:
        """The recorded answer. Raises NotRecorded, and AttemptError of kind `configuration` for a
        cassette that is not valid."""
        if target.options.deterministic:
            return await self._calls.complete(target, request)
        try:
            return replace(self._find(target, request), cached=True)
        except NotRecorded:
            if request.root.resolve() == self._head:
                self._not_recorded.setdefault(request.suite, {})[request.eval_id] = None
            raise

    def notices(self) -> Sequence[str]:
        """The tests of head that need a run by somebody who has the keys, by suite; several
        sentences of many tests, because a report shortens a long one."""
        parts = (
            (suite, list(tests)[start : start + _IN_SENTENCE])
            for suite, tests in self._not_recorded.items()
            for start in range(0, len(tests), _IN_SENTENCE)
        )
        return [
            f"{counted(len(tests), 'test')} of `{suite}` {plural(len(tests), 'needs', 'need')} a "
            f"run with keys, because a request is not recorded: {', '.join(map(repr, tests))}"
            for suite, tests in parts
        ]

    def _find(self, target: Target, request: Request) -> Trace:
        name = target.name
        try:
            described = self._requests.describe(target, request)
        except ValueError as reason:
            raise NotRecorded(f"a request to `{name}` cannot be replayed: {reason}") from None
        folder = self._folder_of(request.root)
        if folder is None:
            problem = f"a request to `{name}` cannot be replayed: the base has no cassettes"
            raise NotRecorded(problem, _RECORD)
        path = folder.file_of(request.suite, request.eval_id)
        where = f"`{path}` of the base" if self._trusted else f"`{path}`"
        exchanges = self._read(folder, request.suite, request.eval_id)
        if exchanges is None:
            raise NotRecorded(
                f"a request to `{name}` is not recorded: there is no {where}", _RECORD
            )
        text = json.dumps(described)
        for exchange in exchanges:
            if json.dumps(exchange.request) == text:
                return exchange.reply
        difference = first_difference(described, [one.request for one in exchanges])
        problem = f"a request to `{name}` is not recorded in {where}"
        raise NotRecorded(f"{problem}: {difference}" if difference else problem, _RECORD)

    def _read_cassette(
        self, folder: CassetteFolder, suite: str, test: str
    ) -> Sequence[Exchange] | None:
        """The exchanges of a test. AttemptError with the location of the first error, and for a
        cassette that is another one than before the first program."""
        findings, path = Findings(), str(folder.file_of(suite, test))
        content = folder.content(suite, test, findings)
        digest = _digest(content)
        if self._recorded.get((folder, suite, test), digest) != digest:
            problem = f"{path} was changed by a program after it was loaded"
            raise AttemptError("configuration", problem, "see which hook or judge writes there")
        exchanges = None if content is None else read_cassette(content, path, suite, test, findings)
        if findings.errors:
            raise AttemptError("configuration", str(findings.errors[0]))
        return exchanges


def _digest(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()
