"""What the stored runs say of the suites themselves, in words."""

from collections.abc import Iterator, Sequence

from agentevals_action.baselines.trends import GateTrend, SuiteTrend
from agentevals_action.escaping import plain
from agentevals_action.formatting import counted
from agentevals_action.model.skill import name_suite

_TEXT = 100  # characters of a name


def name_trend(trend: SuiteTrend) -> str:
    """`support`, or `support: haiku` for a variant."""
    return ": ".join(filter(None, (name_suite(trend.path), trend.variant)))


def list_idle(trends: Sequence[SuiteTrend]) -> Iterator[tuple[str, str, Sequence[str]]]:
    """The gates and tests that never show anything: a title, advice, and a line of plain text for
    each; a list without one is left out."""
    lists = (
        (
            "Gates that never failed",
            "If no pull request failed it either, such a gate tests nothing that changes: make it "
            "harder, or drop it.",
            [_gate(trend, gate) for trend in trends for gate in trend.never_failed],
        ),
        (
            "Gates that never passed",
            "Each pull request that runs it is red: repair the agent or the gate, or drop it.",
            [_gate(trend, gate) for trend in trends for gate in trend.never_passed],
        ),
        (
            "Tests that no run scored",
            "They show nothing: repair what ends them in an error, or remove them.",
            [
                f"{plain(test, _TEXT)} ({plain(name_trend(trend), _TEXT)})"
                for trend in trends
                for test in trend.never_scored
            ],
        ),
    )
    return (found for found in lists if found[2])


def _gate(trend: SuiteTrend, gate: GateTrend) -> str:
    count = len(gate.tests)
    of = plain(gate.tests[0], _TEXT) if count == 1 else counted(count, "test")
    where = f"{plain(name_trend(trend), _TEXT)}, {counted(gate.runs, 'run')}"
    return f"{of}: {plain(gate.name, _TEXT)} ({where})"
