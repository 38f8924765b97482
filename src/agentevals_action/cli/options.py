"""The action's inputs as options of the command line: one table for both, so that names, words and
checks are the same."""

from collections.abc import Callable, Mapping

import click

from agentevals_action.inputs import INPUTS

Command = Callable[..., None]


def takes_inputs(*names: str) -> Callable[[Command], Command]:
    """Gives a command an option for each named input, and as arguments their values with `_` for
    `-`: None where one was not given."""

    def decorate(command: Command) -> Command:
        for name in reversed(names):  # Click shows the option that was added last first
            command = _option(name)(command)
        return command

    return decorate


def as_environment(inputs: Mapping[str, str | None]) -> dict[str, str]:
    """The options that were given, as the runner would hand them over, for the one reader of
    inputs."""
    return {
        f"INPUT_{name.replace('_', '-').upper()}": value
        for name, value in inputs.items()
        if value is not None
    }


def _option(name: str) -> Callable[[Command], Command]:
    described = INPUTS[name]
    words = described.description + (
        f" [default: {described.default}]" if described.default else ""
    )
    return click.option(f"--{name}", metavar=described.kind.upper(), help=words)
