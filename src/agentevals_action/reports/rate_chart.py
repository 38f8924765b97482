"""The pass rate over the last commits as a chart in Markdown, which GitHub draws with Mermaid."""

from collections.abc import Sequence

from agentevals_action import templating
from agentevals_action.baselines.trends import SuiteTrend, overall

_COMMITS = 20
_SHA = 7  # characters of a commit


def rate_chart(trends: Sequence[SuiteTrend]) -> str:
    """The section of the job summary; empty with fewer than two commits, which make no line.

    https://mermaid.js.org/syntax/xyChart.html. The names of the commits are hexadecimal digits."""
    rates = overall(trends)[-_COMMITS:]
    if len(rates) < 2:
        return ""
    commits = [
        {"name": rate.commit[:_SHA], "percent": f"{100 * rate.passed / rate.scored:.1f}"}
        for rate in rates
    ]
    return "\n" + templating.render_report("rate_chart.md.j2", {"commits": commits})
