"""The review as Markdown: the comment, the check run's text, the job summary. The templates write
it, from the facts that they get here."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from markupsafe import Markup

from agentevals_action import __version__, templating
from agentevals_action.baselines.stored import parse_time
from agentevals_action.errors import InvalidInput
from agentevals_action.escaping import code, fenced, plain
from agentevals_action.formatting import counted, each_once, joined
from agentevals_action.model.baseline import SAME_SERVICE, STORED, BaselineOrigin
from agentevals_action.model.comparison import Decision, Outcome, Review
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.path_patterns import literal
from agentevals_action.model.run import CommentTemplate, Level, Policy, Run, is_of_suite
from agentevals_action.model.skill import name_suite
from agentevals_action.reports.markdown import github_limits, tests
from agentevals_action.reports.markdown.github_limits import count_characters, cut_markdown
from agentevals_action.reports.view import judges, sentences, variants
from agentevals_action.reports.view.build import build_view
from agentevals_action.reports.view.cost import spending_sentence
from agentevals_action.reports.view.groups import GROUPS
from agentevals_action.reports.view.models import ReportView, same_errors
from agentevals_action.reports.view.suite_table import suite_table
from agentevals_action.suites.documents.yaml_writer import write_yaml

MARKER = Markup("<!-- agentevals-report -->")
_COMMENT = "comment.md.j2"
#: Spaces at which a cell must not break: all but those before an arrow, a unit and a change.
_NO_BREAK = re.compile(r" (?![→(]|per sample)")


@dataclass(frozen=True)
class Limits:
    """How much of a review a text shows, before escaping: of each group the questions and answers
    (cut to `answer` characters) of the first `detailed` tests, of the table the first `suites`, the
    first `errors` of suites, of each other list the first `items`, of each other text in a line
    `text` characters."""

    detailed: int
    answer: int
    suites: int
    items: int
    errors: int
    text: int


_FULL = Limits(detailed=10, answer=1_500, suites=20, items=30, errors=200, text=300)
#: The lists are cut, the link to the report page stays.
_CUT = Limits(detailed=3, answer=300, suites=10, items=15, errors=15, text=100)


def comment(view: ReportView) -> str:
    """The comment, under 65,000 characters.

    InvalidInput if the review's template cannot be rendered or loses the marker."""
    template = view.review.run.template
    text = _fitting(_COMMENT, view, github_limits.COMMENT_TEXT, template, marker=MARKER)
    if MARKER not in text.splitlines():
        raise InvalidInput(
            f"the template {template.name if template else _COMMENT} loses the marker",
            "extend `comment.md.j2`, or keep `{{ marker }}` on a line of its own",
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
    text = _fitting("check.md.j2", view, github_limits.CHECK_SUMMARY, hidden=hidden)
    return plain(sentences.headline(view), github_limits.CHECK_TITLE), text


def job_summary(view: ReportView) -> str:
    """The job summary: the full comment without its marker."""
    view = replace(view, links=replace(view.links, run_url=None))
    return _fitting(_COMMENT, view, github_limits.STEP_SUMMARY, marker="")


def _fitting(
    name: str,
    view: ReportView,
    limit: int,
    template: CommentTemplate | None = None,
    **facts: Any,
) -> str:
    """Renders the full text, or the cut one if that is too long."""
    text = ""
    for limits in (_FULL, _CUT):
        context = {**list_facts(view, limits), "is_short": limits is _CUT, **facts}
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


def list_facts(view: ReportView, limits: Limits) -> Mapping[str, Any]:
    """What the templates of the comment, the check run and the page read, not escaped."""
    review, run = view.review, view.review.run
    errors, warnings = run.diagnostics(Level.ERROR), run.diagnostics(Level.WARNING)
    suites = "this suite" if len(run.suites) == 1 else f"these {len(run.suites):,} suites"
    return {
        "view": view,
        "review": review,
        "run": run,
        "links": view.links,
        "limits": limits,
        "version": Markup(__version__),  # noqa: S704 - ours
        "runners": {suite.path: suite.run.runner for suite in review.suites},
        "alert": sentences.alert(view),
        "sentence": sentences.sentence(view),
        "table": suite_table(review.suites, limits.suites),
        "groups": [(group, view.groups[group.key]) for group in GROUPS if view.groups[group.key]],
        "errors": errors,
        "errors_title": f"{counted(len(errors), 'error')} {_invalid_files(errors)}",
        "warnings": warnings,
        "warnings_title": f"{counted(len(warnings), 'warning')} about suites",
        "selections_title": f"Why {suites} ran",
        "removed": sentences.removed(view),
        "edited": sentences.edited(view.edits),
        "notices_once": each_once(view.notices),
        "spent": spending_sentence(view.spending),  # a result names the source of its cost
        "base": _describe_base(review),
        "stored": STORED,
        "same_service": SAME_SERVICE,
        "same_errors": same_errors,
        "verdicts": sentences.verdicts,
        "name_suite": name_suite,
        "failed_variants": variants.failed_variants(review.suites),
        "name_variant": variants.name_variant,
        "describe_shown": variants.describe_shown,
        "arm_figures": variants.arm_figures,
        "list_tests": variants.list_tests,
        "has_worse_answers": judges.are_worse(review.suites),
        "describe_pairwise": judges.describe_pairwise,
        "describe_edit": sentences.describe_edit,
        "describe_judge": judges.describe_judge,
        "describe_evidence": tests.describe_evidence,
        "describe_gates": tests.describe_gates,
        "describe_score": tests.describe_score,
        "compare_answers": tests.compare_answers,
        "compare_calls": tests.compare_calls,
        "describe_time": _describe_time,
        "days_since": lambda time: _days_since(time, review),
        "proposal": propose_quarantine(view, limits.items),
        "fenced_file": lambda text: Markup(fenced(text, len(text))),  # noqa: S704 - escaped
        "cell": lambda figure: Markup(_NO_BREAK.sub("&nbsp;", figure)),  # noqa: S704 - our figures
    }


@dataclass(frozen=True)
class _BaseFacts:
    """The `origins` of the suites' results on base; the one that they have in `common`; the
    `problems` because of which there are none; whether tests ask the same service on both sides."""

    origins: Sequence[BaselineOrigin]
    common: BaselineOrigin | None
    problems: Sequence[str]
    is_same_service: bool


def _describe_base(review: Review) -> _BaseFacts:
    suites = review.suites
    origins = [suite.run.base.origin for suite in suites if suite.base and suite.run.base.origin]
    different = {
        # When it was run again is no difference.
        (origin.source, origin.commit, origin.source != "rerun" and origin.time, origin.stale)
        for origin in origins
    }
    return _BaseFacts(
        origins=origins,
        common=min(origins, key=lambda origin: origin.samples) if len(different) == 1 else None,
        problems=tuple(dict.fromkeys(suite.run.base.problem for suite in suites)),
        is_same_service=any(suite.run.base.same_service for suite in suites),
    )


def _describe_time(iso: str) -> str:
    """A time (ISO 8601) in UTC to the minute; other text as it is."""
    time = parse_time(iso)
    return time.strftime("%Y-%m-%d %H:%M UTC") if time else Markup(code(iso))  # noqa: S704 - escaped


def _days_since(iso: str, review: Review) -> int:
    """The days from a time to head's latest result, because a report has no clock; 0 if unknown."""
    tests = (test for suite in review.suites for test in suite.tests)
    latest = max((test.head.timestamp for test in tests if test.head), default="")
    end, start = parse_time(latest), parse_time(iso)
    return (end - start).days if end and start else 0


def _invalid_files(errors: Sequence[Diagnostic]) -> str:
    others = dict.fromkeys(error.location.path for error in errors if not is_of_suite(error))
    where = ["in suites that the change affects"] if any(map(is_of_suite, errors)) else []
    return joined(where + [f"in `{path}`" for path in others])


#: How long a proposed quarantine lasts.
_DURATION = timedelta(days=14)
#: The groups of tests that are proposed, with the beginning of the reason.
_REASONS = {"flaky": "flaky", "stillFailing": "fails on the base, too"}
#: Characters of the id of a test, above which none is proposed.
_LONGEST_ID = 200


@dataclass(frozen=True)
class Proposal:
    """The `text` of `.agentevals.yaml` with entries for the first tests, and the number of all."""

    text: str
    tests: int


def propose_quarantine(view: ReportView, limit: int) -> Proposal | None:
    """Entries for the flaky and the known failures, at most `limit` tests, by the suite and the
    reason; None without such a test or the time of the run. The author of the pull request owns
    them."""
    time = parse_time(view.review.run.time)
    reasons = {
        (listed.suite, listed.comparison.id): reason
        for group, reason in _REASONS.items()
        for listed in view.groups[group]
    }
    entries: dict[tuple[str, str], list[str]] = {}
    for (suite, test), reason in list(reasons.items())[:limit]:
        if len(test) <= _LONGEST_ID:
            entries.setdefault((suite, reason), []).append(literal(test))
    if not time or not entries:
        return None
    quarantine = [
        {
            "tests": tests,
            "suites": [literal(suite)],
            "owner": f"@{view.links.author or 'you'}",
            "reason": f"{reason}; write here what will repair it",
            "expires": (time + _DURATION).date(),
        }
        for (suite, reason), tests in entries.items()
    ]
    return Proposal(write_yaml({"quarantine": quarantine}, in_ascii=True), len(reasons))
