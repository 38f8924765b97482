"""Lines and tables for a terminal, a file or the log of a job."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

#: A text, or a text with its style (https://rich.readthedocs.io/en/stable/style.html).
Styled = str | tuple[str, str]

_UNLIMITED = 100_000  # columns of a stream that is not a terminal


def rich_console(stream: IO[str]) -> Console:
    """A console that wraps and colours only on a terminal."""
    is_terminal = stream.isatty()
    width = None if is_terminal else _UNLIMITED
    return Console(file=stream, highlight=False, force_terminal=is_terminal, width=width)


def print_line(stream: IO[str], *parts: Styled) -> None:
    """Prints one line, which is wrapped between words, and only on a terminal."""
    line = Text.assemble(*parts)
    line.rstrip()
    console = rich_console(stream)
    console.print(line, soft_wrap=not console.is_terminal)


@dataclass(frozen=True)
class Column:
    """A column of a table; figures are aligned to the right and never folded."""

    title: str
    is_figure: bool = False


def print_table(
    stream: IO[str], columns: Sequence[Column], rows: Sequence[Sequence[Styled]], heading: str = ""
) -> None:
    """Prints a table; on a terminal, a text that is too long for its column is folded."""
    console = rich_console(stream)
    table = Table(box=SIMPLE, pad_edge=False, show_edge=False)
    if console.is_terminal:
        table.padding = (0, 1, 0, 0)
    for column in columns:
        is_narrow = console.is_terminal and column.is_figure
        table.add_column(
            column.title.replace(" ", "\n") if is_narrow else column.title,
            justify="right" if column.is_figure else "left",
            no_wrap=column.is_figure,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text.assemble(cell) for cell in row))
    if heading:
        print_line(stream, (heading, "bold"))
    if console.is_terminal:
        console.print(table, "")
        return
    with console.capture() as capture:
        console.print(table, "")
    stream.writelines(f"{line.rstrip()}\n" for line in capture.get().splitlines())
