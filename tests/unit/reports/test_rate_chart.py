"""The chart of the pass rate in the job summary."""

import re

from agentevals_action.reports.rate_chart import rate_chart
from tests.support.trends import trend


def test_chart__is_of_the_last_twenty_commits() -> None:
    suite = trend("`evil` ``` </details> @octocat", runs=25)
    text = rate_chart([suite])
    assert text.startswith("\n### Pass rate over the last 20 commits\n\n```mermaid\n---\n")
    assert text.endswith("```\n")
    names = re.findall(r'"([0-9a-f]{7})"', text)
    assert names == [point.commit[:7] for point in suite.points[-20:]]
    (values,) = re.findall(r"line \[(.*)\]", text)
    last = suite.points[-1]
    assert values.split(", ")[-1] == f"{100 * last.passed / last.scored:.1f}"
    assert "evil" not in text


def test_chart__needs_two_commits() -> None:
    assert rate_chart([]) == ""
    assert rate_chart([trend(runs=1)]) == ""
    assert "last 2 commits" in rate_chart([trend(runs=2)])
