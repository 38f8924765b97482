"""The badge of the default branch, as https://shields.io/badges/endpoint-badge reads it."""

from collections.abc import Sequence
from datetime import datetime

from pydantic_core import to_json

from agentevals_action.formatting import counted, percent
from agentevals_action.model.result import TestResult
from agentevals_action.model.review import Outcome

#: The name of the file on the data branch.
FILE = "badge.json"
#: From the best; each of the first ones needs a share of all tests, where an error is not passed.
_COLORS, _SHARES = ("brightgreen", "green", "yellow", "red"), (1.0, 0.9, 0.7)
#: The best colour of each outcome: what a run could not decide, or did not read, is not green.
_BEST = {Outcome.PASSED: 0, Outcome.INCONCLUSIVE: 2, Outcome.FAILED: 3, Outcome.INVALID: 3}


def badge(results: Sequence[TestResult], outcome: Outcome, time: datetime) -> bytes:
    """The pass rate of the scored tests of a run, its errors, and its date (of a time in UTC)."""
    verdicts = [result.verdict for result in results]
    passed, errors = verdicts.count("pass"), verdicts.count(None)
    message, color = "unknown", "lightgrey"
    if scored := len(results) - errors:
        words = (percent(passed / scored), errors and counted(errors, "error"), f"{time:%Y-%m-%d}")
        message = " · ".join(str(word) for word in words if word)
        missed = sum(passed / len(results) < share for share in _SHARES)
        color = _COLORS[max(missed, _BEST[outcome])]
    return to_json({"schemaVersion": 1, "label": "evals", "message": message, "color": color})
