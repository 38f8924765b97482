"""The review as Markdown: the comment, the check run's text, the job summary."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentevals_action import templating
from agentevals_action.errors import InvalidInput
from agentevals_action.escaping import plain
from agentevals_action.formatting import plural
from agentevals_action.model import github_limits as limits
from agentevals_action.model.github_limits import count_characters, cut_markdown
from agentevals_action.model.review import Decision, Outcome, Review
from agentevals_action.model.run import CommentTemplate, Policy, Run
from agentevals_action.reports.markdown.comment import MARKER, build_comment
from agentevals_action.reports.markdown.sentences import headline
from agentevals_action.reports.markdown.tests import Limits
from agentevals_action.reports.view.build import build_view
from agentevals_action.reports.view.models import ReportView

_FULL = Limits(detailed=10, answer=1_500, suites=20, items=30, errors=200, text=300)
#: The lists are cut, the link to the report page stays.
_CUT = Limits(detailed=3, answer=300, suites=10, items=15, errors=15, text=100)
_COMMENT = "comment.md.j2"


def comment(view: ReportView) -> str:
    """The comment, under 65,000 characters.

    InvalidInput if the review's template cannot be rendered or loses the marker."""
    template = view.review.run.template
    text = _fitting(_COMMENT, view, limits.COMMENT_TEXT, template=template)
    if MARKER not in text.splitlines():
        raise InvalidInput(
            f"the template {template.name if template else _COMMENT} loses the marker",
            "extend `comment.md.j2`, or keep `{{ view.marker }}` on a line of its own",
        )
    return text


def check_template(template: CommentTemplate) -> None:
    """InvalidInput if a custom template cannot make a comment."""
    policy = Policy(fail_on=frozenset())
    run = Run(head_sha="0" * 40, policy=policy, template=template)
    decision = Decision(Outcome.PASSED, 0, "success")
    comment(build_view(Review(run, decision)))


def check(view: ReportView, hidden: int = 0) -> tuple[str, str]:
    """Title (plain text, at most 255 characters) and summary (at most 65,535) of the check run.

    The summary states how many annotations are `hidden`."""
    annotations = plural(hidden, "annotation is", "annotations are")
    note = f"{hidden:,} more {annotations} not shown." if hidden else ""
    text = _fitting("check.md.j2", view, limits.CHECK_SUMMARY, unshown=note)
    return plain(headline(view), limits.CHECK_TITLE), text


def job_summary(view: ReportView) -> str:
    """The job summary: the full comment without its marker."""
    view = replace(view, links=replace(view.links, run_url=None))
    return _fitting(_COMMENT, view, limits.STEP_SUMMARY, marker="")


def _fitting(
    name: str,
    view: ReportView,
    limit: int,
    *,
    template: CommentTemplate | None = None,
    marker: str = MARKER,
    unshown: str = "",
) -> str:
    """Renders the full text, or the cut one if that is too long."""
    text = ""
    for level in (_FULL, _CUT):
        words = build_comment(view, level, is_short=level is _CUT)
        context = {"view": replace(words, marker=marker), "unshown": unshown}
        text = _custom(template, context) if template else templating.render_report(name, context)
        if count_characters(text) <= limit:
            return text
    return cut_markdown(text, limit)  # names and messages that are long themselves


def _custom(template: CommentTemplate, context: Mapping[str, Any]) -> str:
    try:
        return templating.render_custom_report(template.text, template.name, context)
    except ValueError as error:
        advice = f"fix {template.name}, or leave `comment-template` out"
        raise InvalidInput(str(error), advice) from None
