"""Lines and tables for a terminal, a file or the log of a job. Only a terminal gets wrapped lines
and colours."""

from collections.abc import Collection, Sequence
from typing import IO

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

#: A text, or a text with its style (https://rich.readthedocs.io/en/stable/style.html).
Styled = str | tuple[str, str]

_INDENT = "  "  # of a text's other lines
_UNLIMITED = 100_000  # columns of a stream that is not a terminal, and rows of a list


def rich_console(stream: IO[str]) -> Console:
    """A console that wraps and colours only on a terminal."""
    is_terminal = stream.isatty()
    width = None if is_terminal else _UNLIMITED
    return Console(file=stream, highlight=False, force_terminal=is_terminal, width=width)


def print_line(stream: IO[str], text: Styled | Text) -> None:
    """Prints one line, which is wrapped between words, and only on a terminal."""
    line = Text.assemble(text)
    line.rstrip()
    console = rich_console(stream)
    for part in fitting_lines([line], console, _UNLIMITED) if console.is_terminal else [line]:
        console.print(part, soft_wrap=True)


def fitting_lines(texts: Sequence[Text], console: Console, rows: int) -> Sequence[Text]:
    """The lines of the first texts, wrapped, that fit into `rows`, at least those of one text; the
    other texts are counted."""
    lines: list[Text] = []
    for number, text in enumerate(texts):
        first, *others = text.wrap(console, console.width - len(_INDENT))
        wrapped = [first, *(Text(_INDENT).append_text(line) for line in others)]
        is_last = number == len(texts) - 1
        if lines and len(lines) + len(wrapped) + (not is_last) > rows:
            return [*lines, Text(f"… and {len(texts) - number} more")]
        lines += wrapped
    for line in lines:
        line.rstrip()
    return lines


def print_table(
    stream: IO[str],
    titles: Sequence[str],
    rows: Sequence[Sequence[Styled]],
    *,
    texts: Collection[int] = (0,),
    heading: str = "",
) -> None:
    """Prints a table. The columns `texts` are texts, which a terminal folds if they are too long;
    the others are figures, which are aligned to the right and never folded."""
    console = rich_console(stream)
    table = Table(box=SIMPLE, pad_edge=False, show_edge=False)
    if console.is_terminal:
        table.padding = (0, 1, 0, 0)
    for number, title in enumerate(titles):
        is_figure = number not in texts
        table.add_column(
            title.replace(" ", "\n") if is_figure and console.is_terminal else title,
            justify="right" if is_figure else "left",
            no_wrap=is_figure,
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
