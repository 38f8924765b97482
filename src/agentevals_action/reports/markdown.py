"""The review as Markdown: the comment, the check run's text, the job summary."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentevals_action import templating
from agentevals_action.errors import InvalidInput
from agentevals_action.escaping import plain
from agentevals_action.formatting import plural
from agentevals_action.model import github_limits as limits
from agentevals_action.model.github_limits import count_characters
from agentevals_action.model.review import CommentTemplate, Decision, Outcome, Review
from agentevals_action.reports.view.build import build_view
from agentevals_action.reports.view.models import ReportView
from agentevals_action.reports.view.page import MARKER, build_page
from agentevals_action.reports.view.tests import ListLimits
from agentevals_action.reports.view.verdict import headline

_FULL = ListLimits(
    "full", detailed=40, answer=1_500, rows=200, folded=100, quiet=100, items=100, text=300
)
_LARGE = replace(
    _FULL, detailed=300, answer=6_000, rows=2_000, folded=1_000, quiet=1_000, items=1_000, text=500
)
_CHANGED = ListLimits(
    "changed", detailed=5, answer=400, rows=250, folded=20, quiet=0, items=30, text=120
)
_COUNTS = ListLimits("counts", detailed=0, answer=0, rows=0, folded=0, quiet=0, items=20, text=100)
#: For names and messages that are long themselves.
_BARE = replace(_COUNTS, name="bare", items=3, text=60)
_LEVELS = (_FULL, _CHANGED, _COUNTS, _BARE)


def comment(view: ReportView) -> str:
    """The comment, under 65,000 characters: full, only what changed or failed, or only counts.

    InvalidInput if the review's template cannot be rendered, loses the marker or is too long."""
    template = view.review.template
    text = _fitting("comment.md.j2", view, _LEVELS, limits.COMMENT_TEXT, template=template)
    if MARKER not in text.splitlines():
        name = template.name if template else "comment.md.j2"
        raise InvalidInput(
            f"the template {name} loses the marker",
            "keep the block `marker`: `{{ view.marker }}` on a line of its own",
        )
    return text


def check_template(template: CommentTemplate) -> None:
    """InvalidInput if a custom template cannot make a comment."""
    decision = Decision(Outcome.PASSED, 0, "success")
    comment(build_view(Review("0" * 40, None, decision, template=template)))


def check(view: ReportView, hidden: int = 0) -> tuple[str, str]:
    """Title (plain text, at most 255 characters) and summary (at most 65,535) of the check run.

    The summary states how many annotations are `hidden`."""
    annotations = plural(hidden, "annotation is", "annotations are")
    note = f"{hidden:,} more {annotations} not shown." if hidden else ""
    text = _fitting("check.md.j2", view, _LEVELS, limits.CHECK_SUMMARY, unshown=note)
    return plain(headline(view), limits.CHECK_TITLE), text


def job_summary(view: ReportView) -> str:
    """The job summary, at most 1 MiB of UTF-8: the comment with longer lists and answers."""
    view = replace(view, links=replace(view.links, run_url=None))
    return _fitting(
        "summary.md.j2", view, (_LARGE, *_LEVELS), limits.STEP_SUMMARY_BYTES, in_bytes=True
    )


def _fitting(
    name: str,
    view: ReportView,
    levels: Sequence[ListLimits],
    limit: int,
    *,
    template: CommentTemplate | None = None,
    unshown: str = "",
    in_bytes: bool = False,
) -> str:
    """Renders the first level that fits."""
    for level in levels:
        context = {"view": build_page(view, level), "unshown": unshown}
        if template:
            text = _render_custom(template, context)
        else:
            text = templating.render_report(name, context)
        length = len(text.encode(errors="replace")) if in_bytes else count_characters(text)
        if length <= limit:
            return text
    raise InvalidInput(
        f"the template {template.name if template else name} makes more than {limit:,} characters",
        "make it shorter",
    )


def _render_custom(template: CommentTemplate, context: Mapping[str, Any]) -> str:
    try:
        return templating.render_custom_report(template.text, template.name, context)
    except ValueError as error:
        advice = f"fix {template.name}, or leave `comment-template` out"
        raise InvalidInput(str(error), advice) from None
