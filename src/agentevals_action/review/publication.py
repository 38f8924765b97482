"""Publishes the view of a review: the report page, the check run with its annotations, the comment,
the job summary, outputs; a review of the default branch is stored in its history, too."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from agentevals_action.baselines.data_branch import DataBranch
from agentevals_action.baselines.run_files import RunFiles, badge, file_name, write_run
from agentevals_action.baselines.trends import compute_trends
from agentevals_action.errors import GitError, OutputError, ResourceError
from agentevals_action.github.base import Host
from agentevals_action.model.comparison import ChangeKind, Outcome, Review
from agentevals_action.model.job import Job
from agentevals_action.model.run import Level, Run
from agentevals_action.reports.annotations import annotations
from agentevals_action.reports.markdown import texts as markdown
from agentevals_action.reports.page.history_page import PAGE as HISTORY_PAGE
from agentevals_action.reports.page.history_page import history_page
from agentevals_action.reports.publication import CheckReport, CommentReport, Published
from agentevals_action.reports.view.models import ReportView
from agentevals_action.results.run_folder import HEAD_RESULTS
from agentevals_action.review.inputs.request import ReviewWorkspace
from agentevals_action.settings import Settings
from agentevals_action.system.files.tree_files import write_file


async def publish(
    view: ReportView, page: bytes, settings: Settings, host: Host
) -> tuple[ReportView, Published]:
    """Uploads the report page, then writes the check, then the comment. The page is first, because
    the others link to it. Texts that are written later state what the host refused."""
    report_url = await host.upload_report(page)
    view = replace(view, links=replace(view.links, report_url=report_url))
    shown, left = await asyncio.to_thread(annotations, view, settings.annotation_limit)
    title, summary = await asyncio.to_thread(markdown.check, _with_notices(view, host), left)
    conclusion = view.review.decision.conclusion
    check = CheckReport(conclusion, title, summary, shown, report_url)
    check_url = await asyncio.to_thread(host.write_check, check)
    body = await asyncio.to_thread(markdown.comment, _with_notices(view, host))
    outcome = view.review.decision.outcome
    report = CommentReport(body, outcome, _is_wanted(settings.comment, view))
    comment_url = await asyncio.to_thread(host.publish_comment, report)
    text = await asyncio.to_thread(markdown.job_summary, _with_notices(view, host))
    return view, Published(
        report_url=report_url,
        comment_url=comment_url,
        check_url=check_url,
        summary=text,
        annotations=shown,
    )


def outputs(view: ReportView, published: Published, report_dir: str) -> Mapping[str, str]:
    """The action's outputs, as text; unknown figures are empty."""
    review = view.review
    heads = [suite.head for suite in review.suites if suite.head]
    scored, passed = sum(head.scored for head in heads), sum(head.passed for head in heads)
    cost = view.spending.cost_usd
    regressions = sum(test.comparison.is_regression for test in view.tests)
    return {
        "outcome": review.decision.outcome,
        "passed": str(passed),
        "borderline": str(sum(head.borderline for head in heads)),
        "failed": str(sum(head.failed for head in heads)),
        "errored": str(sum(head.errored for head in heads)),
        "regressions": str(regressions),
        "improvements": str(_count(view, ChangeKind.IMPROVED)),
        "pass-rate": f"{passed / scored:.4f}" if scored else "",
        "cost-usd": "" if cost is None else f"{cost:.6f}",
        "report-url": published.report_url or "",
        "comment-url": published.comment_url or "",
        "check-run-url": published.check_url or "",
        **outputs_of_run(review.run, report_dir),
    }


def outputs_of_run(run: Run, report_dir: str) -> Mapping[str, str]:
    """The outputs that a shard has, too."""
    return {
        "report-dir": report_dir,
        "results-path": f"{report_dir}/{HEAD_RESULTS}",
        "base-sha": run.base_sha or "",
        "head-sha": run.head_sha,
    }


async def store_results(
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
    arms = [
        test.variant
        for suite in review.suites
        for comparison in suite.variants
        for test in comparison.tests
        if test.variant and test.id not in comparison.run.stored
    ]
    now, suites = datetime.now(UTC), {(row.eval_path, row.variant) for row in (*results, *arms)}
    name, shown = file_name(now, job.head_sha, run_id), badge(results, review.decision.outcome, now)
    message = f"Results of {job.head_sha[:12]}\n\n[skip ci]"
    try:
        content = await asyncio.to_thread(write_run, (*results, *arms))
        files = await branch.add(name, content, shown, suites, message)
    except (GitError, ResourceError) as error:
        return (
            f"The results were not stored on `{branch.name}`: {error.sentence}. Add `contents: "
            "write` to the `permissions:` of this job if the token may not write.",
        )
    return await asyncio.to_thread(_write_history, files, commits_url, workspace)


def _write_history(files: RunFiles, commits_url: str, workspace: ReviewWorkspace) -> Sequence[str]:
    notices: list[str] = []
    runs = [run for _, run in files.runs(notices)]
    text = history_page(compute_trends(reversed(runs)), commits_url)
    try:
        write_file(workspace.report / HISTORY_PAGE, [text.encode("utf-8", "replace")])
    except OutputError as error:
        notices.append(error.sentence)
    return notices


def _with_notices(view: ReportView, host: Host) -> ReportView:
    return replace(view, notices=(*view.review.run.sentences(Level.NOTICE), *host.notices))


def _count(view: ReportView, change: ChangeKind) -> int:
    return sum(test.comparison.change is change for test in view.tests)


def _is_wanted(comment: str, view: ReportView) -> bool:
    return {
        "always": True,
        "changes": bool(view.groups["passedByEdits"])
        or any(_count(view, change) for change in (ChangeKind.REGRESSED, ChangeKind.IMPROVED)),
        "failures": view.review.decision.outcome is not Outcome.PASSED,
        "off": False,
    }[comment]
