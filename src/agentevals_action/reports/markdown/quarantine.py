"""Entries of the quarantine for tests that fail without the change, to be pasted."""

from dataclasses import dataclass
from datetime import timedelta

from agentevals_action.baselines.stored import parse_time
from agentevals_action.model.path_patterns import literal
from agentevals_action.reports.view.models import ReportView
from agentevals_action.suites.documents.yaml_writer import write_yaml

#: How long a proposed quarantine lasts.
_DURATION = timedelta(days=14)
#: The groups of tests that are proposed, with the beginning of the reason.
_REASONS = {"flaky": "flaky", "stillFailing": "fails on the base, too"}
#: Characters of the id of a test, above which none is proposed.
_LONGEST_ID = 200


@dataclass(frozen=True)
class Proposal:
    """The `text` of `.agentevals.yaml` with entries for the first of so many `tests`."""

    text: str
    tests: int


def propose_quarantine(view: ReportView, limit: int) -> Proposal | None:
    """Entries for the flaky and the known failures, at most `limit` tests, by the suite and the
    reason; None without such a test or the time of the run. The author of the pull request owns
    them."""
    time = parse_time(view.review.run.time)
    reasons = {
        (listed.suite, listed.comparison.id): reason
        for group, reason in _REASONS.items()
        for listed in view.groups[group]
    }
    entries: dict[tuple[str, str], list[str]] = {}
    for (suite, test), reason in list(reasons.items())[:limit]:
        if len(test) <= _LONGEST_ID:
            entries.setdefault((suite, reason), []).append(literal(test))
    if not time or not entries:
        return None
    quarantine = [
        {
            "tests": tests,
            "suites": [literal(suite)],
            "owner": f"@{view.links.author or 'you'}",
            "reason": f"{reason}; write here what will repair it",
            "expires": (time + _DURATION).date(),
        }
        for (suite, reason), tests in entries.items()
    ]
    return Proposal(write_yaml({"quarantine": quarantine}, in_ascii=True), len(reasons))
