"""Targets and requests as the loader and the runner make them, for tests of what is called."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.messages import Message
from agentevals_action.model.target import ProviderContext, Request, Target
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.targets.calls.client import TargetClient
from agentevals_action.targets.registry import PROVIDERS
from agentevals_action.targets.variables import names_in
from agentevals_action.validation.field_errors import describe

AnyTarget = TypeVar("AnyTarget", bound=Target)


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
    made = read(PROVIDERS[definition["provider"].replace("-", "_")], definition)
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
    environment: Mapping[str, str],
    allowed: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    withheld: tuple[str, ...] = (),
) -> ProviderContext:
    """The environment of a provider."""
    return ProviderContext(variables or {}, ChildContext(environment, allowed or {}, withheld))


def calls(
    environment: Mapping[str, str], variables: Mapping[str, str] | None = None, **fields: Any
) -> TargetClient:
    """Calls to every provider there is; waits between tries are a thousandth of the real ones."""
    children = ChildContext(environment, fields.pop("allowed", {}), fields.pop("withheld", ()))
    around = ProviderContext({}, children, fields.pop("scratch", None))
    return TargetClient(
        lambda _root, _folder: variables or {}, around, **{"backoff": 0.001, **fields}
    )
