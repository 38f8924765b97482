"""A group of commands whose modules are imported when they are needed."""

import gc
from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

import click

from agentevals_action.cli import commands


class LazyGroup(click.Group):
    """Imports the module of a command when it is needed, as Click proposes for large command
    lines: `validate` does not wait until the clients of GitHub are imported.

    `members` are the commands in the order of the help text, each with its module, its function
    in the module, and its line of the help text."""

    def __init__(
        self, *words: Any, members: Mapping[str, tuple[str, str, str]], **named: Any
    ) -> None:
        super().__init__(*words, **named)
        self._members = members

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # Click's signature
        """The names, without an import."""
        return list(self._members)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002  # Click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        """Writes the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (*_, line) in self._members.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command; the error about an unknown name proposes similar names."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            name = error.command_name
            raise click.NoSuchCommand(name, possibilities=self._members, ctx=ctx) from None

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command, with its module imported."""
        if cmd_name not in self._members:
            return None
        module, function, _ = self._members[cmd_name]
        command = getattr(import_module(f"{commands.__name__}.{module}"), function)
        gc.freeze()  # what is imported stays
        gc.enable()
        return cast(click.Command, command)
