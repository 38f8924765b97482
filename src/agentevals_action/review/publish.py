"""The publication of a review: check run, comment, job summary, annotations, report folder,
outputs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agentevals_action import reports
from agentevals_action.github.base import Host
from agentevals_action.model.comparison import Change, Outcome, Review
from agentevals_action.model.report import CheckReport, CommentReport, Published
from agentevals_action.reports import annotations, markdown
from agentevals_action.reports.view import cost as costs
from agentevals_action.reports.view.links import Links
from agentevals_action.review.comparison import compare


@dataclass(frozen=True)
class Presentation:
    """How a review is presented: `comment` is the input of that name, `template` a file that
    extends the action's template, `annotation_limit` the maximum number of annotations."""

    links: Links
    comment: str = "always"
    template: Path | None = None
    annotation_limit: int = 100


def publish(review: Review, host: Host, presentation: Presentation) -> Published:
    """Completes the check run, then writes the comment, which contains the notices about the check
    run. The review must not contain secrets."""
    remarks, left = annotations.annotations(review, presentation.annotation_limit)
    title, summary = markdown.check(review, presentation.links, left)
    check_url = host.finish_check(CheckReport(review.decision.conclusion, title, summary, remarks))
    body = markdown.comment(_with_notices(review, host), presentation.links, presentation.template)
    comment_url = host.publish_comment(
        CommentReport(body, review.decision.outcome, _wanted(presentation.comment, review))
    )
    return Published(
        comment_url,
        check_url,
        markdown.job_summary(_with_notices(review, host), presentation.links),
        remarks,
    )


def write_folder(review: Review, folder: Path, presentation: Presentation) -> None:
    """Every registered report into the report folder."""
    for report in reports.files(presentation.links, presentation.template):
        report.write(review, folder)


def outputs(review: Review, published: Published, report_dir: str) -> Mapping[str, str]:
    """The action's outputs, as text; an unknown number is empty."""
    heads = [suite.head for suite in review.suites if suite.head]
    total, errored = sum(head.total for head in heads), sum(head.errored for head in heads)
    passed = sum(head.passed for head in heads)
    cost = costs.of_review(review).cost_usd
    return {
        "outcome": review.decision.outcome,
        "passed": str(passed),
        "borderline": str(sum(head.borderline for head in heads)),
        "failed": str(sum(head.failed for head in heads)),
        "errored": str(errored),
        "regressions": str(
            sum(test.is_regression for suite in review.suites for test in suite.tests)
        ),
        "improvements": str(compare.count(review.suites, Change.IMPROVED)),
        "pass-rate": f"{passed / (total - errored):.4f}" if total > errored else "",
        "cost-usd": "" if cost is None else f"{cost:.6f}",
        "comment-url": published.comment_url or "",
        "check-run-url": published.check_url or "",
        "report-dir": report_dir,
        "results-path": f"{report_dir}/results.jsonl",
        "base-sha": review.base_sha or "",
        "head-sha": review.head_sha,
    }


def _with_notices(review: Review, host: Host) -> Review:
    return replace(review, notices=(*review.notices, *host.notices))


def _wanted(comment: str, review: Review) -> bool:
    moved = (Change.REGRESSED, Change.IMPROVED)
    return {
        "always": True,
        "changes": any(compare.count(review.suites, change) for change in moved),
        "failures": review.decision.outcome is not Outcome.PASSED,
        "off": False,
    }[comment]
