"""Targets and requests as the loader and the runner make them, for tests of what is called."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.messages import Message
from agentevals_action.model.target import Price, Target
from agentevals_action.model.validation.field_errors import describe
from agentevals_action.model.validation.file_model import spellings_of
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.targets.base import ProviderContext, ProviderOptions, Request
from agentevals_action.targets.calls.client import TargetClient
from agentevals_action.targets.providers import PROVIDERS
from agentevals_action.targets.variables import names_in

AnyOptions = TypeVar("AnyOptions", bound=ProviderOptions)


def options(definition: Mapping[str, Any]) -> ProviderOptions:
    """The validated options of a definition, as a targets file gives it; ValueError if they are not
    valid."""
    model = PROVIDERS[definition["provider"].replace("-", "_")]
    common = spellings_of(Target).keys() - spellings_of(model).keys()
    return read_options(
        model, {name: value for name, value in definition.items() if name not in common}
    )


def read_options(model: type[AnyOptions], data: dict[str, Any]) -> AnyOptions:
    """The options of a provider; ValueError if they are not valid."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise ValueError(describe(error, data)) from None


def target(
    definition: Mapping[str, Any],
    *,
    name: str = "default",
    retries: int = 2,
    max_concurrency: int | None = None,
    timeout_seconds: float | None = None,
    price: Price | None = None,
    requests_per_minute: int | None = None,
    cache_key: tuple[str, ...] = (),
) -> Target:
    """A target with this definition."""
    own = options(definition)
    given: dict[str, Any] = {
        "max_concurrency": max_concurrency,
        "timeout_seconds": timeout_seconds,
        "price": price,
        "requests_per_minute": requests_per_minute,
        "cache_key": list(cache_key),
    }
    return Target(
        name=name,
        provider=definition["provider"],
        options=own,
        definition=definition,
        location=Location(".agentv/targets.yaml"),
        is_model=own.is_model,
        variables=tuple(dict.fromkeys((*names_in(definition), *own.variables()))),
        retries=retries,
        **{field: value for field, value in given.items() if value},
    )


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
