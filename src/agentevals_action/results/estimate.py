"""The likely cost of a run, by what the last one cost."""

from pathlib import Path
from statistics import fmean

from agentevals_action.errors import InvalidInput
from agentevals_action.formatting import cost, counted, dollars
from agentevals_action.results.jsonl import read_results


def attempt_cost(results: Path) -> float | None:
    """The mean cost of an attempt (US dollars) in the results file of an earlier run; None if it is
    not known. Tests with cached replies or an error predict nothing."""
    try:
        costs = [
            result.spent.cost_usd / len(result.samples)
            for result in (read_results(results) if results.is_file() else ())
            if result.spent.cost_usd is not None
            and result.samples
            and not (result.spent.cached_replies or result.error)
        ]
    except InvalidInput:
        return None
    return fmean(costs) if costs else None


def estimate(attempts: int, each: float | None, limit: float | None) -> str:
    """The sentence for the log about so many attempts that cost `each`; `limit` is the input
    `max-cost-usd`. Empty if nothing is known."""
    if each is None or not attempts:
        return ""
    total = each * attempts
    sentence = f"Estimate: {counted(attempts, 'attempt')}, about {cost(total)} (by the last run)"
    if limit is not None and total > limit:
        sentence += f"; that is above `max-cost-usd` ({dollars(limit)}): some will not be made"
    return sentence
