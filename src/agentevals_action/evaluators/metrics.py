"""Pure: the figures of a trace against limits; a figure that the trace lacks is a miss, and stays
one when turned round."""

from collections.abc import Sequence
from dataclasses import dataclass

from agentevals_action.model.result import Score
from agentevals_action.model.suite import ToolCall
from agentevals_action.model.trace import Trace

#: Tools that look and change nothing, by the names that agents give them; upper case, `_` and `-`
#: in a name are not heeded.
EXPLORATION_TOOLS = frozenset(
    [
        *("read", "readfile", "viewfile", "notebookread"),
        *(
            "grep",
            "grepsearch",
            "search",
            "searchfiles",
            "filesearch",
            "codebasesearch",
            "semanticsearch",
        ),
        *("glob", "list", "ls", "listdir", "listdirectory", "listfiles"),
        *("websearch", "webfetch"),
    ]
)


@dataclass(frozen=True)
class Check:
    """One limit held against its figure: `holds` is None where the trace lacks the figure; `told`
    says it with both numbers."""

    holds: bool | None
    told: str


def amount(number: float, unit: str) -> str:
    """A figure with its unit (`ms`, `USD`, or none for a count), without digits that are noise."""
    text = f"{number:.9f}".rstrip("0").rstrip(".") if isinstance(number, float) else str(number)
    return f"{text} {unit}".rstrip()


def at_most(
    name: str, figure: float | None, limit: float | None, unit: str = ""
) -> tuple[Check, ...]:
    """The check that a figure is no more than a limit (both rounded to 9 decimals); none when there
    is no limit."""
    if limit is None:
        return ()
    if figure is None:
        return (Check(None, f"{name}: unknown, at most {amount(limit, unit)} asked"),)
    holds = round(figure, 9) <= round(limit, 9)
    relation = "at most" if holds else "more than the"
    return (
        Check(holds, f"{name}: {amount(figure, unit)}, {relation} {amount(limit, unit)} asked"),
    )


def exploration_ratio(calls: Sequence[ToolCall] | None) -> float | None:
    """The share (0-1) of tool calls that look and change nothing (EXPLORATION_TOOLS); None where it
    is unknown or there is no call."""
    if not calls:
        return None
    looking = sum(
        call.name.casefold().replace("_", "").replace("-", "") in EXPLORATION_TOOLS
        for call in calls
    )
    return looking / len(calls)


def about(
    name: str, figure: float | None, target: float | None, tolerance: float
) -> tuple[Check, ...]:
    """The check that a figure is within a tolerance of a target (rounded to 9 decimals); none when
    there is no target."""
    if target is None:
        return ()
    asked = f"{amount(target, '')} ± {amount(tolerance, '')} asked"
    if figure is None:
        return (Check(None, f"{name}: unknown, {asked}"),)
    return (
        Check(
            round(abs(figure - target), 9) <= round(tolerance, 9),
            f"{name}: {amount(round(figure, 4), '')}, {asked}",
        ),
    )


def total_tokens(trace: Trace) -> int | None:
    """Tokens in and out together; None when either is unknown."""
    if trace.input_tokens is None or trace.output_tokens is None:
        return None
    return trace.input_tokens + trace.output_tokens


def score_checks(checks: Sequence[Check]) -> Score:
    """1 when every check holds, else 0; each is a hit or a miss. It is not known where one is
    missing and no other is broken."""
    return Score(
        value=1.0 if all(check.holds for check in checks) else 0.0,
        hits=tuple(check.told for check in checks if check.holds),
        misses=tuple(check.told for check in checks if not check.holds),
        known=any(check.holds is False for check in checks)
        or all(check.holds is not None for check in checks),
    )
