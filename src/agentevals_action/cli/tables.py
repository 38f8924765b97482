"""Tables on standard output, in a module of their own: the library of tables takes longer to import
than most commands."""

import sys
from collections.abc import Collection, Iterable, Sequence

from agentevals_action.escaping import printable
from agentevals_action.reports.terminal import lines as terminal
from agentevals_action.reports.terminal.lines import Styled
from agentevals_action.system.redaction import redact

_CELL = 1_000  # characters


def print_table(
    titles: Sequence[str],
    rows: Iterable[Sequence[Styled]],
    *,
    texts: Collection[int] = (0,),
    heading: str = "",
) -> None:
    """A table with these titles; the columns `texts` are texts, the others figures."""

    def cell(value: Styled) -> Styled:
        text, style = (value, "") if isinstance(value, str) else value
        return printable(redact(text), _CELL), style

    plain = [[cell(value) for value in row] for row in rows]
    terminal.print_table(sys.stdout, titles, plain, texts=texts, heading=printable(heading))
