"""The file of a page: its options, and how it is written and opened."""

import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from agentevals_action.system.files.tree_files import write_file


def page_options(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the options for the file (`output`, by default `name`) and for opening it (`opens`)."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        opens = click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
        return click.option(
            *("-o", "--output"), type=Path, default=Path(name), show_default=True, help="The page."
        )(opens(command))

    return decorate


def write_page(title: str, text: str, output: Path, opens: bool) -> int:
    """Writes and opens a page, and prints where it is; gives the exit code."""
    write_file(output, [text.encode("utf-8", "replace")])
    print(f"{title}: {output}")
    if opens and not webbrowser.open(output.resolve().as_uri()):
        print("no browser could be started", file=sys.stderr)
    return 0
