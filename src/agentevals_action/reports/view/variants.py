"""Variants in words: how often an arm passes, what is shown by that, and which tests differ."""

from collections.abc import Iterable, Mapping, Sequence

from agentevals_action.formatting import cost, counted, percent, plural, score, time
from agentevals_action.model.comparison import (
    ArmDifference,
    Outcome,
    SuiteComparison,
    VariantComparison,
)
from agentevals_action.model.result import SuiteSummary
from agentevals_action.model.variant import Variant
from agentevals_action.reports.view.confirmation import probability
from agentevals_action.reports.view.cost import agent_cost

#: What is said of a condition, in place of the dots.
_CONDITIONS = {
    Outcome.FAILED: "❌ … is not met",
    Outcome.INCONCLUSIVE: "⚠️ … could not be decided",
}


def name_arms(variant: Variant) -> tuple[str, str]:
    """The suite as declared, and the variant, in a sentence."""
    if variant.skill or variant.target:
        return "as declared", f"in `{variant.name}`"
    return "with the skill", "without the skill"


def name_variant(variant: Variant) -> str:
    """The name of a variant's column or row."""
    return name_arms(variant)[1].removeprefix("in ")


def failed_variants(
    suites: Iterable[SuiteComparison],
) -> Sequence[tuple[SuiteComparison, VariantComparison]]:
    """The variants whose condition is not met, with their suites."""
    return [
        (suite, comparison)
        for suite in suites
        for comparison in suite.variants
        if comparison.outcome is Outcome.FAILED
    ]


def column_title(suites: Sequence[SuiteComparison]) -> str:
    """The title of the column of variants; empty without one."""
    titles = {name_variant(variant.run.variant) for suite in suites for variant in suite.variants}
    return titles.pop() if len(titles) == 1 else "variants" if titles else ""


def describe_variants(suite: SuiteComparison, title: str) -> Sequence[str]:
    """The variants of a suite, each with its name if the title is another."""
    named = [(variant, name_variant(variant.run.variant)) for variant in suite.variants]
    return [describe_variant(variant, f"{name} " * (name != title)) for variant, name in named]


def describe_variant(comparison: VariantComparison, name: str = "") -> str:
    """`52%: +35% (12 to 58)`: the pass rate of a variant, and how much higher that of the suite as
    declared is."""
    rate = f"{percent(comparison.first.variant)}: " if comparison.first else ""
    return f"{name}{rate}{describe_shown(comparison)}"


def describe_shown(comparison: VariantComparison) -> str:
    """What a variant shows about the suite as declared, and a condition that is not met."""
    first, must = comparison.first, comparison.run.variant.must
    if first is None:
        shown = "no test was scored in both arms"
    elif first.helps or first.hurts:
        shown = f"{describe_difference(first)}{': worse' if first.hurts else ''}"
    else:
        size = f"; {describe_size(first)} could show none" if not first.can_show else ""
        shown = f"no {'difference' if comparison.run.variant.target else 'help'} shown{size}"
    state = _CONDITIONS.get(comparison.outcome) if comparison.outcome else None
    return f"{shown}; {state.replace('…', f'`must: {must}`')}" if state else shown


def describe_difference(difference: ArmDifference) -> str:
    """`+35% (12 to 58)`: with the 95 % interval. `+14% (p = 0.03)` if the interval is unknown, or
    contains 0: it is about other tests than these, and the verdict is not."""
    mean, interval = difference.declared - difference.variant, difference.difference
    sign = "+" if mean > 0 else ""
    low, high = (_points(interval.low), _points(interval.high)) if interval else (0, 0)
    if low <= 0 <= high:
        shown = probability(difference.p_hurt if difference.hurts else difference.p_help)
    else:
        shown = f"{_signed(low)} to {_signed(high)}"
    return f"{sign}{_signed(_points(mean))}% ({shown})"


def describe_size(difference: ArmDifference) -> str:
    """`5 tests × 3`: the tests, and the samples of each in an arm."""
    return f"{counted(difference.pairs, 'test')} × {difference.samples}"


def _points(share: float) -> int:
    return round(100 * max(min(share, 1), -1))


def _signed(points: int) -> str:
    return str(points).replace("-", "−")


def arm_figures(summary: SuiteSummary | None) -> Mapping[str, str]:
    """The mean score of an arm, and the cost and time of a sample."""
    duration, samples = (summary.duration_ms, summary.samples) if summary else (None, 0)
    return {
        "score": score(summary.average_score if summary else None),
        "cost per sample": cost(agent_cost(summary).per_sample),
        "time per sample": time(duration / samples if duration is not None and samples else None),
    }


def list_tests(comparison: VariantComparison) -> Sequence[tuple[str, Sequence[str]]]:
    """The ids of the tests by the arms that they pass in, with what that means."""
    declared, variant = name_arms(comparison.run.variant)
    remark = "" if comparison.run.variant.target else " (consider removing)"
    kinds = (
        (comparison.with_passes(True, False), ("passes", "pass"), f"only {declared}"),
        (comparison.with_passes(False, True), ("passes", "pass"), f"only {variant}"),
        (comparison.with_passes(True, True), ("passes", "pass"), f"in both{remark}"),
        (comparison.with_passes(False, False), ("fails", "fail"), "in both (too hard, or broken)"),
        (comparison.not_scored, ("does", "do"), "not count"),
    )
    lists = []
    for tests, verbs, where in kinds:
        title = f"{counted(len(tests), 'test')} {plural(len(tests), *verbs)} {where}"
        lists.append((title, [test.id for test in tests]))
    return [(title, ids) for title, ids in lists if ids]
