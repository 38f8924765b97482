"""Targets and requests as the loader and the runner make them, and calls of targets."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic import ValidationError

from agentevals_action.errors import AttemptError
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.messages import Message
from agentevals_action.model.target import Provider, ProviderContext, Request, Target
from agentevals_action.model.trace import Trace
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.targets.calls.client import TargetClient
from agentevals_action.targets.registry import PROVIDERS
from agentevals_action.targets.variables import names_in
from agentevals_action.validation.field_errors import describe

AnyTarget = TypeVar("AnyTarget", bound=Target)
Result = TypeVar("Result")
Outcome = Trace | AttemptError
#: The fields of a target with its provider, or a target.
Definition = Mapping[str, Any] | Target
PATH = {"PATH": os.environ["PATH"]}


def read(model: type[AnyTarget], fields: Mapping[str, Any]) -> AnyTarget:
    """A target with these fields, as a targets file gives it; ValueError if they are not valid."""
    definition = {"provider": model.provider, **fields}
    try:
        read = model.model_validate({"name": "default", **definition})
    except ValidationError as error:
        raise ValueError(describe(error, definition)) from None
    needed = (*names_in(definition), *read.other_variables())
    return read.model_copy(
        update={
            "definition": definition,
            "location": Location(".agentv/targets.yaml"),
            "variables": tuple(dict.fromkeys(needed)),
        }
    )


def target(definition: Mapping[str, Any], **fields: Any) -> Target:
    """A target with this definition; `fields` are others, which are not part of it."""
    made = read(PROVIDERS[definition["provider"]], definition)
    return made.model_copy(update=fields)


def request(
    root: Path,
    *messages: Message | str,
    eval_id: str = "first",
    attempt: int = 0,
    timeout: float = 30,
    folder: Path | None = None,
    **fields: Any,
) -> Request:
    """One call; a string is a user's message."""
    wired: Sequence[Message] = [
        Message("user", message) if isinstance(message, str) else message for message in messages
    ]
    return Request(wired, eval_id, attempt, timeout, root, folder or root, **fields)


def context(
    allowed: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    withheld: tuple[str, ...] = (),
    environment: Mapping[str, str] = PATH,
) -> ProviderContext:
    """The environment of a provider; `allowed` are the variables that the workflow lets through."""
    return ProviderContext(variables or {}, ChildContext(environment, allowed or {}, withheld))


def use(
    definition: Definition,
    work: Callable[[Provider], Awaitable[Result]],
    around: ProviderContext | None = None,
) -> Result:
    """The result of calls of one connected target, which is closed after them."""

    async def used() -> Result:
        made = definition if isinstance(definition, Target) else target(definition)
        provider = made.connect(around or context())
        try:
            return await work(provider)
        finally:
            await provider.close()

    return asyncio.run(used())


async def answer(provider: Provider, request: Request) -> Trace:
    """One call, as soon as the target can be called."""
    await provider.wait_until_ready(request)
    return await provider.complete(request)


def ask(
    definition: Definition,
    root: Path,
    *messages: Message | str,
    around: ProviderContext | None = None,
    **fields: Any,
) -> Trace:
    """The answer to one question; `fields` are those of its request."""
    asked = request(root, *(messages or ("hello",)), **fields)
    return use(definition, lambda provider: answer(provider, asked), around)


def refused(
    definition: Definition, root: Path, *messages: Message | str, **fields: Any
) -> AttemptError:
    """The error of one question."""
    with pytest.raises(AttemptError) as caught:
        ask(definition, root, *messages, **fields)
    return caught.value


def outcomes(
    definition: Definition,
    *requests: Request,
    around: ProviderContext | None = None,
) -> list[Outcome]:
    """The answers and errors of calls, one after another."""

    async def outcome(provider: Provider, request: Request) -> Outcome:
        try:
            return await answer(provider, request)
        except AttemptError as error:
            return error

    async def work(provider: Provider) -> list[Outcome]:
        return [await outcome(provider, request) for request in requests]

    return use(definition, work, around)


def shown(outcome: Outcome) -> str:
    """An answer, or the kind and the text of an error."""
    return outcome.output if isinstance(outcome, Trace) else f"{outcome.kind}: {outcome}"


def calls(variables: Mapping[str, str] | None = None, **fields: Any) -> TargetClient:
    """Calls to every provider there is; waits between tries are a thousandth of the real ones."""
    known = variables or {}
    return TargetClient(lambda _root, _folder: known, context(), backoff=0.001, **fields)
