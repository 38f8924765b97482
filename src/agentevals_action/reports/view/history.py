"""What the stored runs say of the suites themselves, in words."""

from collections.abc import Iterator, Sequence

from agentevals_action.baselines.trends import Idle, SuiteTrend
from agentevals_action.escaping import plain
from agentevals_action.formatting import counted
from agentevals_action.model.skill import name_suite

_TEXT = 100  # characters of a name
#: The lists of what is idle, by its kind: a title and advice.
_LISTS = {
    "never failed": (
        "Gates that never failed",
        "If no pull request failed it either, such a gate tests nothing that changes: make it "
        "harder, or drop it.",
    ),
    "never passed": (
        "Gates that never passed",
        "Each pull request that runs it is red: repair the agent or the gate, or drop it.",
    ),
    "never scored": (
        "Tests that no run scored",
        "They show nothing: repair what ends them in an error, or remove them.",
    ),
    "not calibrated": (
        "Judges without a calibration",
        "Label answers (`judge label`), then run `judge calibrate`.",
    ),
}


def name_trend(trend: SuiteTrend) -> str:
    """`support`, or `support: haiku` for a variant."""
    return ": ".join(filter(None, (name_suite(trend.path), trend.variant)))


def list_idle(trends: Sequence[SuiteTrend]) -> Iterator[tuple[str, str, Sequence[str]]]:
    """The gates, tests and judges that show nothing: a title, advice, and a line of plain text for
    each; a list without one is left out."""
    for kind, (title, advice) in _LISTS.items():
        entries = [(trend, idle) for trend in trends for idle in trend.idle if idle.kind == kind]
        if entries:
            yield title, advice, [_describe(*entry) for entry in entries]


def _describe(trend: SuiteTrend, idle: Idle) -> str:
    count = len(idle.tests)
    of = plain(idle.tests[0], _TEXT) if count == 1 else counted(count, "test")
    name = f": {plain(idle.evaluator, _TEXT)}" if idle.evaluator else ""
    return f"{of}{name} ({plain(name_trend(trend), _TEXT)}, {counted(idle.runs, 'run')})"
