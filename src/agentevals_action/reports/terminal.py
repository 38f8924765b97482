"""How lines and tables are written: as plain text, or with rich where there is a terminal.

Without a terminal there are no colours and nothing is wrapped: that needs no rich, whose import
takes longer than the tests of a small suite."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

#: A text, or one with its style (https://rich.readthedocs.io/en/stable/style.html), which only a
#: terminal shows.
Styled = str | tuple[str, str]

# The runner looks for `::` after white space, and for the old `##[` anywhere. It compares by
# culture, where characters without a weight of their own (zero-width ones, controls) are passed
# over: whatever is not plain ASCII counts as nothing here.
_COMMAND = re.compile(r"[^\x21-\x7e]*:[^\x20-\x7e]*:")
_OLD_COMMAND = re.compile(r"#(?=[^\x20-\x7e]*#[^\x20-\x7e]*\[)")


def no_command(line: str) -> str:
    """A line that a runner takes for no command: a leading `::` is moved off its beginning, `##[`
    is parted."""
    line = _OLD_COMMAND.sub("# ", line)
    return f"| {line}" if _COMMAND.match(line) else line


def printable(text: str, limit: int = 200) -> str:
    """One line that steers neither a terminal nor a runner: control characters become `�`, and it
    is cut to `limit` characters."""
    line = no_command(
        "".join(char if char.isprintable() else " " if char in "\n\r\t" else "�" for char in text)
    )
    return line if len(line) <= limit else line[: limit - 1] + "…"


def rich_console(stream: IO[str]) -> "Console":
    """What writes to a terminal."""
    from rich.console import Console

    return Console(file=stream, highlight=False)


def print_line(stream: IO[str], *parts: Styled) -> None:
    """One line out of parts, never wrapped."""
    if not stream.isatty():
        stream.write(
            "".join(part if isinstance(part, str) else part[0] for part in parts).rstrip() + "\n"
        )
        return
    from rich.text import Text

    rich_console(stream).print(Text.assemble(*parts), soft_wrap=True)


@dataclass(frozen=True)
class Column:
    """A column of a table: figures stand on the right and are never folded."""

    title: str
    is_figure: bool = False


def print_table(
    stream: IO[str], columns: Sequence[Column], rows: Sequence[Sequence[Styled]], heading: str = ""
) -> None:
    """Rows under their titles; on a terminal what is too long for its column is folded, never
    cut."""
    if not stream.isatty():
        stream.write("".join(f"{line}\n" for line in _plain_table(columns, rows, heading)))
        return
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    listed = Table(
        title=Text(heading, style="bold") if heading else None,
        title_justify="left",
        box=SIMPLE,
        pad_edge=False,
    )
    for column in columns:
        listed.add_column(
            column.title,
            justify="right" if column.is_figure else "left",
            no_wrap=column.is_figure,
            overflow="fold",
        )
    for row in rows:
        listed.add_row(*(Text.assemble(cell) for cell in row))
    rich_console(stream).print(listed)


def _plain_table(
    columns: Sequence[Column], rows: Sequence[Sequence[Styled]], heading: str
) -> Iterator[str]:
    titles = [column.title for column in columns]
    texts = [[cell if isinstance(cell, str) else cell[0] for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *texts, strict=True)]

    def line(cells: Sequence[str]) -> str:
        placed = zip(cells, columns, widths, strict=True)
        return "  ".join(
            cell.rjust(width) if column.is_figure else cell.ljust(width)
            for cell, column, width in placed
        ).rstrip()

    yield from (heading, "") if heading else ("",)
    yield line(titles)
    yield "─" * (sum(widths) + 2 * (len(widths) - 1))
    yield from map(line, texts)
    yield ""
