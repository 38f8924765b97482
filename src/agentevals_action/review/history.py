"""The stored history of the default branch: what a review adds to it and shows of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agentevals_action.baselines.trends import QuarantinedTest
from agentevals_action.errors import HostError, InvalidInput, OutputError
from agentevals_action.escaping import plain
from agentevals_action.github.data_branch import DataBranch
from agentevals_action.github.events import Job
from agentevals_action.model.review import Review
from agentevals_action.reports.html.history_page import PAGE, history_page
from agentevals_action.reports.rate_chart import rate_chart
from agentevals_action.review.change.workspace import ReviewWorkspace


@dataclass(frozen=True)
class ShownHistory:
    """The `chart` of the job summary (Markdown, empty if there is none), and notices."""

    chart: str = ""
    notices: tuple[str, ...] = ()


def store_and_show(
    review: Review, job: Job, workspace: ReviewWorkspace, branch: DataBranch
) -> ShownHistory:
    """Stores the results of the default branch for later pull requests, writes the page of the
    history into its report folder, and makes the chart."""
    if workspace.settings.baseline not in ("auto", "branch"):
        return ShownHistory()
    notices: list[str] = []
    runs = [run for suite in review.suites if (run := suite.head_run())]
    if runs and job.is_default_branch:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        notices += branch.store(runs, job.head_sha, now, _quarantine(review))
    try:
        trends = branch.trends()
    except HostError as error:
        return ShownHistory(notices=(*notices, f"The history is not shown: {error}."))
    if trends and job.is_default_branch:
        notices += _write_page(history_page(trends, branch.commits_url), workspace)
    return ShownHistory(rate_chart(trends), tuple(notices))


def _quarantine(review: Review) -> Mapping[str, Sequence[QuarantinedTest]]:
    return {
        suite.path: [
            QuarantinedTest(
                id=plain(test.id),
                owner=plain(held.owner),
                reason=plain(held.reason),
                expires=held.expires.isoformat(),
            )
            for test in suite.tests
            if (held := test.quarantine) and test.head
        ]
        for suite in review.suites
    }


def _write_page(text: str, workspace: ReviewWorkspace) -> Sequence[str]:
    try:
        workspace.output.write(PAGE, [text.encode("utf-8", "replace")])
    except (InvalidInput, OutputError) as error:
        return (error.sentence,)
    return ()
