"""Publishes the view of a review: the report page, the check run with its annotations, the comment,
the job summary, outputs."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from agentevals_action.github.base import Host
from agentevals_action.model.comparison import ChangeKind
from agentevals_action.model.report import CheckReport, CommentReport, Published
from agentevals_action.model.review import Outcome
from agentevals_action.model.run import Level, Run
from agentevals_action.reports.annotations import annotations
from agentevals_action.reports.markdown import texts as markdown
from agentevals_action.reports.view.models import ReportView
from agentevals_action.results.run_folder import HEAD_RESULTS
from agentevals_action.settings import Settings


async def publish(
    view: ReportView, page: bytes, settings: Settings, host: Host
) -> tuple[ReportView, Published]:
    """Uploads the report page, then writes the check, then the comment. The page is first, because
    the others link to it. What the host refused is in the texts that are written after that."""
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
    total, errored = sum(head.total for head in heads), sum(head.errored for head in heads)
    passed = sum(head.passed for head in heads)
    cost = view.spending.cost_usd
    regressions = sum(test.comparison.is_regression for test in view.tests)
    return {
        "outcome": review.decision.outcome,
        "passed": str(passed),
        "borderline": str(sum(head.borderline for head in heads)),
        "failed": str(sum(head.failed for head in heads)),
        "errored": str(errored),
        "regressions": str(regressions),
        "improvements": str(_count(view, ChangeKind.IMPROVED)),
        "pass-rate": f"{passed / (total - errored):.4f}" if total > errored else "",
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
