"""The log of a job: a folded group per suite, annotations if there is no check run, and the outputs
and the summary for the runner."""

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from agentevals_action.escaping import printable, safe_log_line, uncoloured
from agentevals_action.formatting import each_once, shortened
from agentevals_action.github.runner import workflow_commands as commands
from agentevals_action.model.comparison import SuiteComparison
from agentevals_action.model.run import Level
from agentevals_action.reports.markdown import github_limits as limits
from agentevals_action.reports.publication import Published
from agentevals_action.reports.terminal import console
from agentevals_action.reports.view.cost import spending_sentence
from agentevals_action.reports.view.judges import describe_judge
from agentevals_action.reports.view.models import ReportView
from agentevals_action.reports.view.sentences import describe_edit, headline
from agentevals_action.system.redaction import Redactor, redact

log = logging.getLogger(__name__)

_LINE = 1_000  # characters
_EDITS = 50


class _SafeFormatter(logging.Formatter):
    """Formats records so that no line is a command to the runner."""

    def format(self, record: logging.LogRecord) -> str:
        return safe_log_line(super().format(record))


def protect_log(redactor: Redactor) -> None:
    """Removes secrets and commands from all further log records."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(redactor.filter())
        handler.setFormatter(_SafeFormatter("%(levelname)s: %(message)s"))


@contextmanager
def folded(title: str, in_actions: bool) -> Iterator[Callable[[str], None]]:
    """A folded group in the log of a job, plain lines on standard error elsewhere; yields a
    function that writes a line of a stranger's program."""
    stream = sys.stdout if in_actions else sys.stderr
    title = commands.command("group", title) if in_actions else f"{title}:"
    print(title, file=stream, flush=True)
    try:
        yield lambda line: print(
            safe_log_line(printable(redact(uncoloured(line)), _LINE)),
            file=stream,
            flush=True,
        )
    finally:
        if in_actions:
            print(commands.command("endgroup"), file=stream, flush=True)


def report_errors(reasons: Iterable[str]) -> None:
    """Reports invalid inputs, a refused event or errors of a shard as annotations of the job."""
    for reason in reasons:
        print(commands.command("error", redact(reason)), flush=True)


def write_review(view: ReportView, published: Published, notices: Sequence[str]) -> None:
    """Writes the review: a group per suite, diagnostics, annotations if no check run has them,
    notices (the host's first), advisory judges, edits, the cost, the decision, the addresses."""
    review = view.review
    tests = {path: list(group) for path, group in groupby(view.tests, lambda test: test.suite)}
    for suite in review.suites:
        print(commands.command("group", printable(_title(suite))))
        for test in tests.get(suite.path, ()):
            print(safe_log_line(console.describe_test(view, test).plain))
        print(commands.command("endgroup"))
    for diagnostic in review.run.diagnostics(Level.ERROR):
        print(safe_log_line(f"error: {diagnostic}"))
    for diagnostic in review.run.diagnostics(Level.WARNING):
        print(safe_log_line(f"warning: {diagnostic}"))
    if published.check_url is None:
        for line in commands.annotations(published.annotations):
            print(line)
    _write_notices((*notices, *review.run.sentences(Level.NOTICE)))
    edits = [
        f"{describe_edit(edit)} at `{edit.location.path}:{edit.location.line}`"
        for edit in view.edits
    ]
    # With the outputs of their programs.
    problems = dict.fromkeys(suite.run.base.problem for suite in review.suites)
    lines = (
        *map(describe_judge, view.advisory_judges),
        *shortened(edits, _EDITS),
        spending_sentence(view.spending),
        headline(view),
        *review.decision.reasons,
        *(problem for problem in problems if "\n" in problem),
        published.report_url,
        published.comment_url,
        published.check_url,
    )
    for line in filter(None, lines):
        print(printable(line, _LINE))
    sys.stdout.flush()


def _write_notices(notices: Iterable[str]) -> None:
    """Writes each notice once, as a warning as far as GitHub shows warnings."""
    for number, notice in enumerate(each_once(notices)):
        if number < limits.COMMANDS_PER_STEP:
            print(commands.command("warning", notice))
        else:
            print(printable(f"notice: {notice}", _LINE))


def _title(suite: SuiteComparison) -> str:
    head = suite.head
    if head is None:
        return suite.run.label
    counts = [
        f"{head.passed} passed",
        head.borderline and f"{head.borderline} borderline",
        head.failed and f"{head.failed} failed",
        head.errored and f"{head.errored} errors",
        head.advisory and f"{head.advisory} not scored",
    ]
    return f"{suite.run.label}: {', '.join(str(count) for count in counts if count)}"
