"""The stored history of the default branch: what a run of that branch adds to it, and its page."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from agentevals_action.baselines.data_branch import DataBranch
from agentevals_action.baselines.run_files import RunFiles, badge, file_name, write_run
from agentevals_action.baselines.trends import compute_trends
from agentevals_action.errors import GitError, OutputError, ResourceError
from agentevals_action.model.job import Job
from agentevals_action.model.review import Review
from agentevals_action.reports.page.history_page import PAGE, history_page
from agentevals_action.review.inputs.request import ReviewWorkspace
from agentevals_action.system.files.tree_files import write_file


async def store(
    review: Review,
    job: Job,
    workspace: ReviewWorkspace,
    branch: DataBranch,
    run_id: int,
    commits_url: str,
) -> Sequence[str]:
    """Stores the results and the badge of the default branch, and writes the page of the history
    into the report folder. A failure is a notice. `commits_url` is the address of a commit without
    its SHA."""
    if not job.is_default_branch or workspace.settings.baseline not in ("auto", "branch"):
        return ()
    results = [test.head for suite in review.suites for test in suite.tests if test.head]
    if not results:
        return ()
    now, suites = datetime.now(UTC), {row.eval_path for row in results}
    name, shown = file_name(now, job.head_sha, run_id), badge(results, review.decision.outcome, now)
    message = f"Results of {job.head_sha[:12]}\n\n[skip ci]"
    try:
        content = await asyncio.to_thread(write_run, results)
        files = await branch.add(name, content, shown, suites, message)
    except (GitError, ResourceError) as error:
        return (
            f"The results were not stored on `{branch.name}`: {error.sentence}. Add `contents: "
            "write` to the `permissions:` of this job if the token may not write.",
        )
    return await asyncio.to_thread(_write_page, files, commits_url, workspace)


def _write_page(files: RunFiles, commits_url: str, workspace: ReviewWorkspace) -> Sequence[str]:
    notices: list[str] = []
    runs = [run for _, run in files.runs(notices)]
    text = history_page(compute_trends(reversed(runs)), commits_url)
    try:
        write_file(workspace.report / PAGE, [text.encode("utf-8", "replace")])
    except OutputError as error:
        notices.append(error.sentence)
    return notices
