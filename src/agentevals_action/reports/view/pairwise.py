"""What pairwise evaluators say about head's answers, in words."""

from collections.abc import Iterable

from agentevals_action.formatting import counted, plural
from agentevals_action.model.comparison import PairwiseComparison, SuiteComparison


def describe_pairwise(found: PairwiseComparison) -> str:
    """`head's answer is much better in 2 and much worse in 9 of 20 pairs (9 ties, 3 of them flips):
    worse than base's (p = 0.033)`; with what fresh answers show, and why it decides nothing."""
    fresh = f"; fresh answers: {describe_pairwise(found.fresh)}" if found.fresh else ""
    advisory = f"; advisory: {found.advisory}" if found.advisory else ""
    notes = f" ({counted(found.ties, 'tie')}" if found.ties else ""
    notes += f", {found.flips} of them {plural(found.flips, 'a flip', 'flips')}" * bool(found.flips)
    notes += ")" * bool(notes)
    of = f"much worse in {found.losses} of {counted(found.pairs, 'pair')}{notes}"
    shown = {
        "worse": f"worse than base's (p = {found.p_worse:.2g})",
        "better": f"better than base's (p = {found.p_better:.2g})",
        "nothing": "no difference shown",
        "too few pairs": f"with {counted(found.wins + found.losses, 'decisive pair')} nothing "
        "could be found",
    }
    better = f"head's answer is much better in {found.wins}"
    return f"{better} and {of}: {shown[found.finding]}{fresh}{advisory}"


def worse_answers(suites: Iterable[SuiteComparison]) -> str:
    """`head's answers are worse than base's in 1 suite (advisory)`; empty if in none. Where they
    decide, the outcome says so."""
    number = sum(
        any(each.finding == "worse" and each.outcome is None for each in suite.pairwise)
        for suite in suites
    )
    words = f"head's answers are worse than base's in {counted(number, 'suite')}"
    return f"{words} (advisory)" if number else ""


def are_worse(suites: Iterable[SuiteComparison]) -> bool:
    """Whether head's answers are worse somewhere, whether this decides or not."""
    return any(each.finding == "worse" for suite in suites for each in suite.pairwise)
