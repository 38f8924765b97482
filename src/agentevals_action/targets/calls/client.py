"""Calls to targets: rate-limited, retried, timed and priced. A dead target is not called
again."""

import asyncio
import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from pydantic import ValidationError

from agentevals_action.errors import AttemptError, TargetDead
from agentevals_action.model.target import Provider, ProviderContext, Request, Target
from agentevals_action.model.trace import Trace
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.redaction import without_secrets
from agentevals_action.targets.calls.budget import Budget
from agentevals_action.targets.calls.permissions import Permissions
from agentevals_action.targets.calls.retry import RateLimit, Retries
from agentevals_action.targets.prices import with_cost
from agentevals_action.targets.variables import Variables, missing_error, names_in, resolve
from agentevals_action.validation.field_errors import describe

#: Seconds after its time limit until a provider is cancelled: it can report more about a time-out
#: than the client.
GRACE = 5.0


@dataclass
class _SharedState:
    """The state that all calls to one target share; `providers` by the suite's folder."""

    rate_limit: RateLimit
    dead: TargetDead | None = None
    providers: dict[Path, Provider] = field(default_factory=dict)


@dataclass(frozen=True)
class _Connection:
    """A target as seen from one suite's folder: as `declared`, and with its variables."""

    declared: Target
    target: Target
    shared: _SharedState
    provider: Provider


class TargetClient:
    """Calls targets. `variables` returns the variables for `${{ }}`, which `permissions` limit if
    there are any; `backoff` is the first wait before a retry in seconds."""

    def __init__(
        self,
        variables: Variables,
        context: ProviderContext,
        *,
        budget: Budget | None = None,
        permissions: Permissions | None = None,
        backoff: float = 1.0,
    ) -> None:
        self._variables = functools.cache(variables)
        self._context = context
        self._budget = budget or Budget()
        self._backoff = backoff
        self._permissions = permissions
        self._shared: dict[str, _SharedState] = {}
        self._connections: dict[tuple[int, Path, Path], _Connection] = {}

    async def complete(self, target: Target, request: Request) -> Trace:
        """One answer of a target. `request.timeout`, or the target's own limit if smaller, covers
        all retries, but not the waits for the rate limit and until the target can be called.

        Raises TargetDead if the target refuses all calls, else AttemptError of kind `timeout`,
        `configuration`, `budget` or `target`."""
        connection = self._connect(target, request.root, request.suite_folder)
        shared, limit = connection.shared, _time_limit(target, request)
        retries = Retries(target.retries, limit, self._backoff, shared.rate_limit)
        async with shared.rate_limit.slot:
            try:
                return await retries.run(lambda: self._call(connection, request, retries))
            except TimeoutError:
                raise AttemptError("timeout", f"no answer within {limit:g} s") from None
            except TargetDead as error:
                problem = f"the target {target.name} cannot be used: {error}"
                shared.dead = shared.dead or TargetDead(problem, error.hint)
                raise shared.dead from None

    def load(self, target: Target, folder: Folder) -> None:
        """Reads the files of a target that decide about its answers, for a suite in `folder`.
        Raises AttemptError."""
        self._connect(target, folder.root, folder.path).provider.load(folder)

    async def check(self, target: Target, request: Request) -> str:
        """The smallest call that shows whether a target would answer, without retries; returns and
        raises as the `check` of its provider does."""
        provider = self._connect(target, request.root, request.suite_folder).provider
        limit = _time_limit(target, request)
        await provider.wait_until_ready(request)
        try:
            async with asyncio.timeout(limit + GRACE):
                return await provider.check(replace(request, timeout=limit))
        except TimeoutError:
            raise AttemptError("timeout", f"no answer within {limit:g} s") from None

    async def close(self) -> None:
        """Closes all connections; a later call connects again."""
        shared, self._shared, self._connections = self._shared, {}, {}
        for state in shared.values():
            for provider in state.providers.values():
                await provider.close()

    async def _call(self, connection: _Connection, request: Request, retries: Retries) -> Trace:
        """One call, counted and priced; its reply contains no secret."""
        target, shared = connection.target, connection.shared
        await shared.rate_limit.turn()
        if shared.dead is not None:
            raise shared.dead
        self._budget.check()
        try:
            await connection.provider.wait_until_ready(request)
            started = monotonic()
            try:
                reply = await _answer(connection.provider, request, retries.seconds_left)
            finally:
                seconds = monotonic() - started
                retries.deduct(seconds)
        except AttemptError as error:
            if error.spent is not None:  # a failed call is paid for, too
                self._budget.add(target.name, with_cost(error.spent, target))
            if error.kind == "target" and request.workspace is None:
                folder = Folder(request.root, request.suite_folder)
                if missing := connection.declared.missing_program(folder):
                    problem = f"{missing.location}: {missing.problem}"
                    raise AttemptError("target", problem, missing.advice) from error
            raise
        shared.rate_limit.succeeded()
        if reply.duration_ms is None and not reply.cached:  # a replayed one has it
            reply = replace(reply, duration_ms=round(seconds * 1000, 1))
        reply = with_cost(without_secrets(reply), target)
        self._budget.add(target.name, reply)
        return reply

    def _connect(self, target: Target, root: Path, folder: Path) -> _Connection:
        # The connection holds the declared target, so that no other target gets its id.
        key = id(target), root, folder
        if key not in self._connections:
            variables = self._variables(root, folder)
            if missing := [name for name in target.variables if name not in variables]:
                raise missing_error(missing)
            resolved = resolve_target(target, variables)
            if self._permissions is not None:
                self._permissions.check(resolved, variables, root)
            shared = self._shared_state(resolved, variables)
            provider = shared.providers.get(folder)
            if provider is None:
                provider = resolved.connect(replace(self._context, variables=variables))
                shared.providers[folder] = provider
            self._connections[key] = _Connection(target, resolved, shared, provider)
        return self._connections[key]

    def _shared_state(self, target: Target, variables: Mapping[str, str]) -> _SharedState:
        """The one state of all targets with equal resolved fields, keys and limits, such as those
        of head and base."""
        names = filter(None, (*target.other_variables(), target.key_variable))
        keys = {name: variables.get(name) for name in names}
        limits = (target.max_concurrency, target.requests_per_minute)
        fields = target.own_fields()
        identity = json.dumps(
            [target.name, target.provider, fields, keys, limits], default=str, sort_keys=True
        )
        if identity not in self._shared:
            self._shared[identity] = _SharedState(RateLimit(*limits))
        return self._shared[identity]


async def _answer(provider: Provider, request: Request, seconds: float) -> Trace:
    """The answer of one call. AttemptError for an empty one; TimeoutError."""
    if seconds != request.timeout:
        request = replace(request, timeout=seconds)
    async with asyncio.timeout(seconds + GRACE):
        reply = await _complete(provider, request)
    if not reply.has_answer:
        error = AttemptError("target", "the answer is empty", "return a text or a tool call")
        error.spent = reply
        raise error
    return reply


async def _complete(provider: Provider, request: Request) -> Trace:
    if request.tools is None:
        return await provider.complete(request)
    from agentevals_action.tools.attempt import complete_with_tools  # jsonschema: only with tools

    return await complete_with_tools(provider.complete, request, request.tools)


def _time_limit(target: Target, request: Request) -> float:
    return min(request.timeout, target.timeout_seconds or request.timeout)


def resolve_target(target: Target, variables: Mapping[str, str]) -> Target:
    """The target with `${{ }}` resolved in the fields of its provider; AttemptError of kind
    `configuration`."""
    fields = target.own_fields()
    if not names_in(fields):
        return target
    resolved = resolve(fields, variables)
    common = {name: getattr(target, name) for name in Target.model_fields}
    named = {"name": target.name, "provider": target.provider}
    try:
        return type(target).model_validate(named | resolved).model_copy(update=common)
    except ValidationError as error:
        problem = f"the target {target.name} is not valid with its variables filled in: "
        raise AttemptError("configuration", problem + describe(error, resolved)) from None
