"""What pairwise evaluators say about head's answers, in words."""

from collections.abc import Iterable

from agentevals_action.formatting import counted, plural
from agentevals_action.model.comparison import PairwiseComparison, SuiteComparison


def describe_pairwise(found: PairwiseComparison) -> str:
    """`head's answer is much better in 2 and much worse in 9 of 20 pairs (9 ties, 3 of them flips):
    worse than base's (p = 0.033)`."""
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
    return f"head's answer is much better in {found.wins} and {of}: {shown[found.finding]}"


def worse_answers(suites: Iterable[SuiteComparison]) -> str:
    """`head's answers are worse than base's in 1 suite (advisory)`; empty if in none."""
    number = sum(any(each.finding == "worse" for each in suite.pairwise) for suite in suites)
    words = f"head's answers are worse than base's in {counted(number, 'suite')}"
    return f"{words} (advisory)" if number else ""
