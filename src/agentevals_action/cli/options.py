"""The options that commands share: the action's inputs, paths, and the form of the output."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from agentevals_action.settings import INPUTS

#: The inputs of commands that only read suites.
READ_INPUTS = (
    *("suites", "targets", "target", "judge-target", "strict", "env"),
    "working-directory",
)
#: The inputs of commands that run suites.
RUN_INPUTS = (
    *("suites", "targets", "target", "judge-target", "max-concurrency"),
    *(
        "timeout",
        "setup",
        "prepare",
        "env",
        "strict",
        "max-cost-usd",
        "cache",
        "cache-dir",
    ),
    "report-dir",
    "working-directory",
)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document instead of lines."
)
markdown_option = click.option(
    "--markdown", "as_markdown", is_flag=True, help="Print the comment also on a terminal."
)


def page_option(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the option for the file of a page (`path`), by default `name`."""
    words = ("-o", "--output", "path")
    return click.option(*words, type=Path, default=Path(name), show_default=True, help="The page.")


def input_options(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds an option for each of these inputs.

    The command gets them as keyword arguments with `_` for `-`, None if not given."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for name in reversed(names):  # Click shows the option first that is added last
            described = INPUTS[name]
            default = f" [default: {described.default}]" if described.default else ""
            words = f"{described.description}{default}"
            if described.kind == "boolean":
                words = described.description.replace(": true or false", "")
                option = click.option(f"--{name}", flag_value="true", default=None, help=words)
            else:
                option = click.option(f"--{name}", metavar=described.kind.upper(), help=words)
            command = option(command)
        return command

    return decorate


def as_environment(inputs: Mapping[str, str | None]) -> dict[str, str]:
    """The given options as the variables in which a runner passes inputs."""
    return {
        f"INPUT_{name.replace('_', '-').upper()}": value
        for name, value in inputs.items()
        if value is not None
    }
