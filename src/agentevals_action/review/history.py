"""The stored history of the default branch: what a review adds to it and shows of it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agentevals_action.baselines.data_branch import DataBranch
from agentevals_action.baselines.run_files import RunFiles, file_name, write_run
from agentevals_action.baselines.trends import SuiteTrend, trends_of
from agentevals_action.errors import GitError, InvalidInput, OutputError, ResourceError
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


async def store_and_show(
    review: Review,
    job: Job,
    workspace: ReviewWorkspace,
    branch: DataBranch,
    run_id: int,
    commits_url: str,
) -> ShownHistory:
    """Stores the results of the default branch for later pull requests, writes the page of the
    history into its report folder, and makes the chart. A failure is a notice. `commits_url` is the
    address of a commit without its SHA."""
    if workspace.settings.baseline not in ("auto", "branch") or not review.suites:
        return ShownHistory()
    notices: list[str] = []
    if job.is_default_branch:
        notices += await _store(review, job, branch, run_id)
    try:
        files = await branch.read() or RunFiles({})
    except (GitError, ResourceError) as error:
        return ShownHistory(notices=(*notices, f"The history is not shown: {error.sentence}."))
    trends = await asyncio.to_thread(_trends, files, notices)
    if trends and job.is_default_branch:
        notices += await asyncio.to_thread(_write_page, trends, commits_url, workspace)
    return ShownHistory(rate_chart(trends), tuple(notices))


def _trends(files: RunFiles, notices: list[str]) -> Sequence[SuiteTrend]:
    runs = [run for _, run in files.runs(notices)]
    return trends_of(reversed(runs))


async def _store(review: Review, job: Job, branch: DataBranch, run_id: int) -> Sequence[str]:
    runs = [run for suite in review.suites if (run := suite.head_run())]
    results = [result for run in runs for result in run.results]
    if not results:
        return ()
    name = file_name(datetime.now(UTC), job.head_sha, run_id)
    message = f"Results of {job.head_sha[:12]}\n\n[skip ci]"
    try:
        content = await asyncio.to_thread(write_run, results)
        await branch.add(name, content, [run.path for run in runs], message)
    except (GitError, ResourceError) as error:
        return (
            f"The results were not stored on `{branch.name}`: {error.sentence}. Add `contents: "
            "write` to the `permissions:` of this job if the token may not write.",
        )
    return ()


def _write_page(
    trends: Sequence[SuiteTrend], commits_url: str, workspace: ReviewWorkspace
) -> Sequence[str]:
    text = history_page(trends, commits_url)
    try:
        workspace.output.write(PAGE, [text.encode("utf-8", "replace")])
    except (InvalidInput, OutputError) as error:
        return (error.sentence,)
    return ()
