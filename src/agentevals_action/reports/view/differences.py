"""How sure a difference to base is: its interval in words, and where two figures read alike."""

import math
from collections.abc import Callable, Iterable, Sequence

from agentevals_action.formatting import time
from agentevals_action.model.comparison import Difference, SuiteComparison


def lines(suite: SuiteComparison) -> tuple[str, ...]:
    """The differences of a suite, with what they mean: only those that are known, and that the
    figures show at all."""
    kinds = (
        ("score", suite.score, _score, ("higher", "lower")),
        ("cost", suite.cost, _money, ("more expensive", "cheaper")),
        ("time", suite.duration, time, ("slower", "faster")),
    )
    return tuple(
        f"{name} {_told(found, figure, words)}"
        for name, found, figure, words in kinds
        if found and _shows(found, figure)
    )


def is_noise(difference: Difference | None, base: float | None, head: float | None) -> bool:
    """Whether two figures may not be called different: their difference is known, no change, and
    inside its interval (figures over other tests than those that were compared may lie outside)."""
    if difference is None or difference.is_change or base is None or head is None:
        return False
    return round(difference.low, 9) <= round(head - base, 9) <= round(difference.high, 9)


def pooled(differences: Iterable[Difference | None]) -> Difference | None:
    """The difference over the questions of several suites, which are independent of each other;
    None when one is not known."""
    known = list(differences)
    found = [one for one in known if one is not None]
    if not found or len(found) < len(known):
        return None
    pairs = sum(one.pairs for one in found)
    mean = math.fsum(one.mean * one.pairs for one in found) / pairs
    half = _spread([(one.high - one.mean) * one.pairs for one in found]) / pairs
    detectable = _spread([one.detectable * one.pairs for one in found]) / pairs
    return Difference(
        mean, mean - half, mean + half, detectable, pairs, sum(one.clusters for one in found)
    )


def _spread(parts: Sequence[float]) -> float:
    return math.sqrt(math.fsum(part * part for part in parts))


def _shows(difference: Difference, figure: Callable[[float], str]) -> bool:
    nothing = figure(0.0)
    if figure is _score and not difference.is_change:
        return any(
            figure(abs(value)) != nothing
            for value in (difference.mean, difference.low, difference.high)
        )
    return figure(abs(difference.mean)) != nothing


def _told(difference: Difference, figure: Callable[[float], str], words: tuple[str, str]) -> str:
    mean, low, high = (
        _signed(difference.mean, figure),
        _bound(difference.low, figure),
        _bound(difference.high, figure),
    )
    between = f" ({low} to {high})" if low != high else ""
    if difference.is_change:
        return f"{mean}{between}: {words[difference.mean < 0]} than on base"
    sees = f"it would see one of {figure(difference.detectable)} or more"
    if figure is _score and difference.detectable > 1:
        sees = "it has too few tests to see any"
    return f"{mean}{between}: no change that this suite could tell from noise; {sees}"


def _signed(value: float, figure: Callable[[float], str]) -> str:
    told = figure(abs(value))
    return told if told == figure(0.0) else f"{'+' if value > 0 else '−'}{told}"


def _bound(value: float, figure: Callable[[float], str]) -> str:
    # A bound that is not 0 is never told as 0: an interval would seem to hold what it leaves out.
    if value and figure(abs(value)) == figure(0.0):
        return "just above 0" if value > 0 else "just under 0"
    return _signed(value, figure)


def _score(value: float) -> str:
    return (
        f"{value:.2f}"
        if value == 0 or value >= 0.005
        else f"{value:.1g}"
        if value >= 0.00005
        else "0.00"
    )


def _money(usd: float) -> str:
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.4f}"
