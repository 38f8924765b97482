"""Every call to a target, agent's or judge's: connected once, cached, limited, retried, timed,
priced; a dead target is left alone."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from agentevals_action.entries.reading import read_entry, to_data
from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.model.file_model import FileModel
from agentevals_action.model.target import Price, Target
from agentevals_action.model.trace import Trace
from agentevals_action.suites.files.validation_errors import Refused
from agentevals_action.system import redaction
from agentevals_action.targets.base import ProviderOptions, Provider, Request, ProviderContext
from agentevals_action.targets.budget import Budget
from agentevals_action.targets.rate_limit import RateLimit
from agentevals_action.targets.retry import Tries
from agentevals_action.targets.variables import missing_error, names_in, resolve

if TYPE_CHECKING:
    from agentevals_action.targets.cache.keys import CacheKeys
    from agentevals_action.targets.cache.store import Cache

#: Seconds that a provider gets to keep its own time limit, and to say more about it, before it is
#: cancelled.
GRACE = 5.0

#: The variables that `${{ }}` may name for suites in a folder: repository root, then folder (both
#: absolute).
Variables = Callable[[Path, Path], Mapping[str, str]]


def missing_variables(target: Target, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the variables that a target needs and that are not set, each once."""
    own = target.options.variables() if isinstance(target.options, ProviderOptions) else ()
    needed = dict.fromkeys((*target.variables, *names_in(target.definition), *own))
    return tuple(name for name in needed if name not in variables)


@dataclass
class _Line:
    """What all calls to one target share: its pace, the reason why it is dead, its connections by
    suite folder, what keys it holds."""

    throttle: RateLimit
    secrets: tuple[str, ...]
    dead: TargetDead | None = None
    providers: dict[Path, Provider] = field(default_factory=dict)


@dataclass(frozen=True)
class _Connection:
    """A target as it is reached from one suite's folder; `options` are resolved."""

    target: Target
    options: ProviderOptions
    line: _Line
    provider: Provider


class TargetClient:
    """TargetClient targets. `variables` gives what `${{ }}` may name, `surroundings` what providers may
    use beside it, `cache` and `keys` (both or neither) where replies are looked up and kept;
    `backoff` is the first wait between tries, in seconds, doubled for each further one."""

    def __init__(
        self,
        variables: Variables,
        surroundings: ProviderContext,
        *,
        budget: Budget | None = None,
        cache: "Cache | None" = None,
        keys: "CacheKeys | None" = None,
        backoff: float = 1.0,
    ) -> None:
        self._variables = variables
        self._known: dict[tuple[Path, Path], Mapping[str, str]] = {}
        self._surroundings = surroundings
        self._budget = budget or Budget()
        self._cache, self._keys = cache, keys
        self._backoff = backoff
        self._lines: dict[str, _Line] = {}
        self._ready: dict[tuple[int, Path, Path], _Connection] = {}
        self._flights: dict[str, tuple[asyncio.Lock, list[None]]] = {}

    async def complete(self, target: Target, request: Request) -> Trace:
        """One answer of a target. `request.timeout`, or the target's own limit if smaller, covers
        all tries, not the wait for its turn.

        Raises TargetDead when the target refuses everybody, else AttemptError of kind `timeout`,
        `configuration`, `budget` or `target`."""
        connection = self._connected(target, request)
        key = (
            self._keys.key(target, connection.options, request, connection.line.secrets)
            if self._keys
            else None
        )
        if key is None or self._cache is None:
            return _priced(await self._asked(connection, request), target.price)
        async with self._alone(key.digest):
            if stored := await self._cache.get(key):
                return _priced(stored, target.price)
            trace = await self._asked(connection, request)
            await self._cache.put(
                key, trace
            )  # without our own arithmetic on it: the price may change
            return _priced(trace, target.price)

    async def check(self, target: Target, request: Request) -> None:
        """The least that tells whether a target would answer, tried once; raises as `complete`
        does."""
        connection = self._connected(target, request)
        limit = _limit(target, request)
        try:
            async with asyncio.timeout(limit + GRACE):
                await connection.provider.check(replace(request, timeout=limit))
        except TimeoutError:
            raise AttemptError("timeout", f"no answer within {limit:g} s") from None

    async def close(self) -> None:
        """Closes every connection; a call afterwards connects anew."""
        lines, self._lines, self._ready = self._lines, {}, {}
        for line in lines.values():
            for provider in line.providers.values():
                await provider.close()

    @asynccontextmanager
    async def _alone(self, digest: str) -> AsyncIterator[None]:
        """One at a time for each key: head and base ask the same at the same moment, and the second
        finds the first one's reply."""
        lock, waiting = self._flights.setdefault(digest, (asyncio.Lock(), []))
        waiting.append(None)
        try:
            async with lock:
                yield
        finally:
            waiting.pop()
            if not waiting:
                self._flights.pop(digest, None)

    async def _asked(self, connection: _Connection, request: Request) -> Trace:
        line, target = connection.line, connection.target
        async with line.throttle.slot():
            try:
                trace = await self._tried(connection, request)
            except TargetDead as error:
                line.dead = line.dead or TargetDead(
                    f"the target {target.name} cannot be used: {error}", error.hint
                )
                raise line.dead from None
        self._budget.add(target.name, _priced(trace, target.price))
        return trace

    def _connected(self, target: Target, request: Request) -> _Connection:
        place = id(target), request.root, request.suite_folder
        if place not in self._ready:
            variables = self._variables_for(request)
            if missing := missing_variables(target, variables):
                raise missing_error(missing)
            options = _resolved(target, variables)
            line = self._line(target, options, variables)
            if request.suite_folder not in line.providers:
                line.providers[request.suite_folder] = options.connect(
                    replace(self._surroundings, variables=variables)
                )
            # The target is kept: its id would be given to another one otherwise.
            self._ready[place] = _Connection(
                target, options, line, line.providers[request.suite_folder]
            )
        return self._ready[place]

    def _variables_for(self, request: Request) -> Mapping[str, str]:
        key = request.root, request.suite_folder
        if key not in self._known:
            self._known[key] = self._variables(*key)
        return self._known[key]

    def _line(
        self, target: Target, options: ProviderOptions, variables: Mapping[str, str]
    ) -> _Line:
        """Targets of one name in two trees, or with other keys in another folder, are one only when
        they come out the same."""
        keys = {
            name: variables.get(name)
            for name in (*options.variables(), options.key_variable)
            if name
        }
        limits = (target.max_concurrency, target.requests_per_minute)
        identity = json.dumps(
            [target.name, target.provider, _plain(options), keys, limits],
            default=str,
            sort_keys=True,
        )
        if identity not in self._lines:
            given = (
                value
                for name, value in _plain(options).items()
                if redaction.looks_secret(name) and isinstance(value, str)
            )
            secrets = tuple(value for value in (*given, *keys.values()) if value)
            self._lines[identity] = _Line(RateLimit(*limits), secrets)
        return self._lines[identity]

    async def _tried(self, connection: _Connection, request: Request) -> Trace:
        target, throttle = connection.target, connection.line.throttle
        tries = Tries(target.retries, _limit(target, request), self._backoff)
        while True:
            await throttle.turn()
            if connection.line.dead is not None:
                raise connection.line.dead
            self._budget.check()
            try:
                with tries.timed() as left:
                    async with asyncio.timeout(left + GRACE):
                        trace = await connection.provider.complete(replace(request, timeout=left))
            except TimeoutError:
                raise AttemptError("timeout", f"no answer within {tries.limit:g} s") from None
            except AttemptError as error:
                if error.spent is not None:  # what failed is paid for all the same
                    self._budget.add(target.name, _priced(error.spent, target.price))
                if not isinstance(error, TransientError):
                    raise
                await tries.failed(error, throttle)
            else:
                throttle.succeeded()
                return _timed(trace, tries.last_ms)


def _limit(target: Target, request: Request) -> float:
    return min(request.timeout, target.timeout_seconds or request.timeout)


def _resolved(target: Target, variables: Mapping[str, str]) -> ProviderOptions:
    options = target.options
    if not isinstance(options, ProviderOptions):
        raise TypeError(f"{target.provider} has no provider behind it")
    if not names_in(_plain(options)):
        return options
    try:
        return read_entry(type(options), resolve(_plain(options), variables))
    except Refused as error:
        raise AttemptError(
            "configuration",
            f"the target {target.name} is wrong once its variables are filled in: {error}",
        ) from None


def _plain(options: Struct | FileModel) -> Mapping[str, object]:
    return to_data(options, defaults=False)


def _timed(trace: Trace, duration_ms: float) -> Trace:
    """The measured duration where the reply reports none; how long it took to find a stored reply
    says nothing of the call made then."""
    if trace.duration_ms is not None or trace.cached:
        return trace
    return replace(trace, duration_ms=round(duration_ms, 1))


def _priced(trace: Trace, price: Price | None) -> Trace:
    """The cost by the target's price where the reply reports none."""
    if (
        trace.cost_usd is not None
        or price is None
        or trace.input_tokens is None
        or trace.output_tokens is None
    ):
        return trace
    return replace(
        trace,
        cost_usd=(trace.input_tokens * price.input + trace.output_tokens * price.output)
        / 1_000_000,
    )
