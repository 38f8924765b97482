"""Every call to a target, agent's or judge's: connected once, limited, retried, timed, priced; a dead target is left alone."""

import asyncio
import json
import random
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import BaseModel, ValidationError

from agentevals_action.errors import AttemptError, TargetDead, TransientError
from agentevals_action.model.target import Price, Target
from agentevals_action.model.trace import Trace
from agentevals_action.providers.base import Options, Provider, Request, Surroundings
from agentevals_action.variables import missing_error, names_in, resolve

#: Seconds that a provider gets to keep its own time limit, and to say more about it, before it is cancelled.
GRACE = 5.0
#: Seconds that our own backoff waits at most; what a server asks for may be longer.
MAX_BACKOFF = 30.0

#: The variables that `${{ }}` may name for suites in a folder: repository root, then folder (both absolute).
Variables = Callable[[Path, Path], Mapping[str, str]]


def missing_variables(target: Target, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the variables that a target needs and that are not set, each once."""
    own = target.options.variables() if isinstance(target.options, Options) else ()
    needed = dict.fromkeys((*target.variables, *names_in(target.definition), *own))
    return tuple(name for name in needed if name not in variables)


@dataclass
class _Line:
    """What all calls to one target share: its concurrency, the reason why it is dead, its connections by suite folder."""

    slots: asyncio.Semaphore | None
    dead: TargetDead | None = None
    providers: dict[Path, Provider] = field(default_factory=dict)


class Calls:
    """Calls targets. `providers` are the known ones by name, `variables` gives what `${{ }}` may name, `environment`, `allowed`,
    `withheld` and `scratch` are as in `Surroundings`; `backoff` is the first wait between tries, in seconds, doubled for each further
    one."""

    def __init__(
        self,
        providers: Mapping[str, type[Options]],
        variables: Variables,
        environment: Mapping[str, str],
        allowed: Mapping[str, str],
        withheld: tuple[str, ...] = (),
        *,
        scratch: Path | None = None,
        backoff: float = 1.0,
    ) -> None:
        self._providers = providers
        self._variables = variables
        self._known: dict[tuple[Path, Path], Mapping[str, str]] = {}
        self._environment = environment
        self._allowed = allowed
        self._withheld = withheld
        self._scratch = scratch
        self._backoff = backoff
        self._lines: dict[str, _Line] = {}
        self._ready: dict[tuple[int, Path, Path], tuple[Target, _Line, Provider]] = {}

    async def complete(self, target: Target, request: Request) -> Trace:
        """One answer of a target. `request.timeout`, or the target's own limit if smaller, covers all tries, not the wait for a slot.

        Raises TargetDead when the target refuses everybody, AttemptError of kind `timeout`, `configuration` or `target` otherwise.
        """
        line, provider = self._connected(target, request)
        async with AsyncExitStack() as held:
            if line.slots is not None:
                await held.enter_async_context(line.slots)
            if line.dead is not None:
                raise line.dead
            try:
                return await self._tried(target, provider, request)
            except TargetDead as error:
                line.dead = line.dead or TargetDead(f"the target {target.name} cannot be used: {error}", error.hint)
                raise line.dead from None

    async def close(self) -> None:
        """Closes every connection; a call afterwards connects anew."""
        lines, self._lines, self._ready = self._lines, {}, {}
        for line in lines.values():
            for provider in line.providers.values():
                await provider.close()

    def _connected(self, target: Target, request: Request) -> tuple[_Line, Provider]:
        place = id(target), request.root, request.suite_folder
        if place not in self._ready:
            variables = self._variables_for(request)
            if missing := missing_variables(target, variables):
                raise missing_error(missing)
            options = self._resolved(target, variables)
            line = self._line(target, options, variables)
            if request.suite_folder not in line.providers:
                surroundings = Surroundings(variables, self._environment, self._allowed, self._withheld, self._scratch)
                line.providers[request.suite_folder] = options.connect(surroundings)
            # The target is kept: its id would be given to another one otherwise.
            self._ready[place] = target, line, line.providers[request.suite_folder]
        _, line, provider = self._ready[place]
        return line, provider

    def _variables_for(self, request: Request) -> Mapping[str, str]:
        key = request.root, request.suite_folder
        if key not in self._known:
            self._known[key] = self._variables(*key)
        return self._known[key]

    def _resolved(self, target: Target, variables: Mapping[str, str]) -> Options:
        known = self._providers.get(target.provider)
        if known is None:
            raise AttemptError("configuration", f"the target {target.name} has the unknown provider {target.provider}")
        if not names_in(_plain(target.options)) and isinstance(target.options, known):
            return target.options
        try:
            return known.model_validate(resolve(_plain(target.options), variables))
        except ValidationError as error:
            # Never the value: it may be a key.
            faults = "; ".join(f"`{'.'.join(map(str, fault['loc']))}`: {fault['msg']}" for fault in error.errors(include_input=False))
            raise AttemptError("configuration", f"the target {target.name} is wrong once its variables are filled in: {faults}") from None

    def _line(self, target: Target, options: Options, variables: Mapping[str, str]) -> _Line:
        """Targets of one name in two trees, or with other keys in another folder, are one only when they come out the same."""
        keys = {name: variables.get(name) for name in options.variables()}
        identity = json.dumps([target.name, target.provider, _plain(options), keys, target.max_concurrency], default=str, sort_keys=True)
        if identity not in self._lines:
            slots = asyncio.Semaphore(target.max_concurrency) if target.max_concurrency else None
            self._lines[identity] = _Line(slots)
        return self._lines[identity]

    async def _tried(self, target: Target, provider: Provider, request: Request) -> Trace:
        loop = asyncio.get_running_loop()
        limit = min(request.timeout, target.timeout_seconds or request.timeout)
        deadline = loop.time() + limit
        for repetition in range(target.retries + 1):
            started = loop.time()
            try:
                async with asyncio.timeout_at(deadline + GRACE):
                    trace = await provider.complete(replace(request, timeout=max(deadline - started, 0.0)))
            except TimeoutError:
                raise AttemptError("timeout", f"no answer within {limit:g} s") from None
            except TransientError as error:
                await self._wait(error, repetition, target, deadline)
                continue
            return _completed(trace, (loop.time() - started) * 1000, target.price)
        raise AssertionError("the last try returns or raises")

    async def _wait(self, error: TransientError, repetition: int, target: Target, deadline: float) -> None:
        """Waits before the next try; raises the error when there is none, or no time for it."""
        tries = f" (after {repetition + 1} tries)" if repetition else ""
        if repetition == target.retries:
            raise AttemptError("target", f"{error}{tries}", error.hint) from None
        backoff = min(self._backoff * 2**repetition, MAX_BACKOFF) * random.uniform(0.5, 1)  # noqa: S311 - jitter is no secret
        pause = max(backoff, error.retry_after or 0.0)
        left = deadline - asyncio.get_running_loop().time()
        if pause >= left:
            raise AttemptError("target", f"{error}{tries}; no time is left to wait {pause:.1f} s and try again", error.hint) from None
        await asyncio.sleep(pause)


def _plain(options: BaseModel) -> Mapping[str, object]:
    return options.model_dump(exclude_unset=True)


def _completed(trace: Trace, duration_ms: float, price: Price | None) -> Trace:
    """What the reply did not report and can be known otherwise: the measured duration, the cost by the target's price."""
    cost = trace.cost_usd
    if cost is None and price is not None and trace.input_tokens is not None and trace.output_tokens is not None:
        cost = (trace.input_tokens * price.input + trace.output_tokens * price.output) / 1_000_000
    measured = round(duration_ms, 1) if trace.duration_ms is None else trace.duration_ms
    return replace(trace, cost_usd=cost, duration_ms=measured)
