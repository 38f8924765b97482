"""Texts on the rows of a terminal."""

from io import StringIO

import pytest
from rich.console import Console
from rich.text import Text

from agentevals_action.reports.terminal.lines import fitting_lines

LONG, SHORT = "one two three four five six eight", "seven"


@pytest.mark.parametrize(
    ("texts", "rows", "lines"),
    [
        ([], 3, []),
        (["one two sevenseven"], 1, ["one two", "  sevenseven"]),
        ([LONG, SHORT], 3, ["one two three", "  four five six", "  eight", "… and 1 more"]),
        ([LONG, SHORT], 4, ["one two three", "  four five six", "  eight", "seven"]),
        ([SHORT, LONG], 4, ["seven", "one two three", "  four five six", "  eight"]),
        ([LONG] * 9, 6, ["one two three", "  four five six", "  eight", "… and 8 more"]),
        ([SHORT] * 3, 2, ["seven", "… and 2 more"]),
    ],
)
def test_fitting_lines__wrap_while_there_are_rows(
    texts: list[str], rows: int, lines: list[str]
) -> None:
    console = Console(file=StringIO(), width=15)
    found = fitting_lines([Text(text) for text in texts], console, rows)
    assert [line.plain.rstrip() for line in found] == lines
