"""Texts on the rows of a terminal."""

from io import StringIO

import pytest
from rich.console import Console
from rich.text import Text

from agentevals_action.reports.terminal import fitting_lines

LONG, SHORT = "one two three four five six eight", "seven"


@pytest.mark.parametrize(
    ("texts", "rows", "lines"),
    [
        ([], 3, []),
        (["one two sevenseven", SHORT], 2, ["one two seve…", "seven"]),
        ([LONG, SHORT], 2, ["one two thre…", "seven"]),
        ([LONG, SHORT], 3, ["one two three", "  four five si…", "seven"]),
        ([LONG, SHORT], 9, ["one two three", "  four five six", "  eight", "seven"]),
        ([SHORT, LONG], 4, ["seven", "one two three", "  four five six", "  eight"]),
        (
            [LONG] * 9,
            5,
            ["one two three", "  four five six", "  eight", "one two thre…", "… and 7 more"],
        ),
        ([SHORT] * 3, 1, ["… and 3 more"]),
    ],
)
def test_fitting_lines__wrap_while_there_are_rows(
    texts: list[str], rows: int, lines: list[str]
) -> None:
    console = Console(file=StringIO(), width=15)
    found = fitting_lines([Text(text) for text in texts], console, rows)
    assert [line.plain.rstrip() for line in found] == lines
