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
    """The lines of texts in at most `rows`: each text has one, and the first ones have more while
    there are rows. Of more texts than rows, half as many as rows are shown, and the others are
    counted."""
    shown = texts if len(texts) <= rows else texts[: rows // 2]
    lines: list[Text] = []
    spare = rows - len(shown) - (len(shown) < len(texts))
    width = console.width - len(_INDENT)
    for text in shown:
        wrapped = text.wrap(console, width)
        for line in wrapped:
            line.rstrip()
        last = min(spare, len(wrapped) - 1)
        rest = Text(" ").join(wrapped[last:])
        rest.truncate(width, overflow="ellipsis")
        first, *others = *wrapped[:last], rest
        lines += [first, *(Text(_INDENT).append_text(line) for line in others)]
        spare -= last
    if len(shown) < len(texts):
        lines.append(Text(f"… and {len(texts) - len(shown)} more"))
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
