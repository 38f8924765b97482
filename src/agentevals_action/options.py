"""The action's inputs as options of the command line: one table for both, so that names, words and checks are the same."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from agentevals_action.settings import INPUTS


def takes_inputs(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command an option for each named input; the command gets those that were given as `inputs`, by their input name."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def call(**values: Any) -> None:
            given = {name: values.pop(_parameter(name)) for name in names}
            command(**values, inputs={name: value for name, value in given.items() if value is not None})

        signature = inspect.signature(command)
        own = [parameter for parameter in signature.parameters.values() if parameter.name != "inputs"]
        shared = [_option(name) for name in names]
        call.__signature__ = signature.replace(parameters=own + shared)  # type: ignore[attr-defined]  # what typer reads
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in own + shared}
        return call

    return decorate


def as_environment(inputs: Mapping[str, str]) -> dict[str, str]:
    """Options as the runner would hand them over, for the one reader of inputs."""
    return {f"INPUT_{name.upper()}": value for name, value in inputs.items()}


def _parameter(name: str) -> str:
    return f"input_{name.replace('-', '_')}"


def _option(name: str) -> inspect.Parameter:
    described = INPUTS[name]
    words = described.description + (f" [default: {described.default}]" if described.default else "")
    annotation = Annotated[str | None, typer.Option(f"--{name}", help=words, metavar=described.kind.upper(), show_default=False)]
    return inspect.Parameter(_parameter(name), inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
