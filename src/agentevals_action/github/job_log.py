"""The log of a job: one folded group a suite, annotations where no check stands, outputs and
summary for the runner."""

import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agentevals_action import escaping
from agentevals_action.errors import AgentEvalsError, InvalidInput
from agentevals_action.github import limits, workflow_commands
from agentevals_action.model.comparison import Review, SuiteComparison, TestComparison
from agentevals_action.model.notices import Notices
from agentevals_action.reports import console, terminal
from agentevals_action.system.redaction import Redactor

if TYPE_CHECKING:
    from agentevals_action.review.publish import Published

log = logging.getLogger(__name__)

_REASON = 500  # characters of a reason in the job summary
_BECAME = 500  # characters of what became of a test
_ANSWER = 300  # characters of an answer that a line of the log shows
#: What a program colours its output with, and moves its cursor by (ECMA-48, 5.4).
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class _SafeFormatter(logging.Formatter):
    """No line of a log record can be a command to the runner."""

    def format(self, record: logging.LogRecord) -> str:
        return workflow_commands.safe_log_line(super().format(record))


def begin(redactor: Redactor) -> None:
    """From here on the log has no secrets and no commands in it."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(redactor.filter())
        handler.setFormatter(_SafeFormatter("%(levelname)s: %(message)s"))


@contextmanager
def folded(
    title: str, redact: Callable[[str], str], in_actions: bool
) -> Iterator[Callable[[str], None]]:
    """A part of the log while it lasts: a folded group in the log of a job, elsewhere plain lines
    on standard error. What it gives takes lines as they came from a stranger."""
    stream = sys.stdout if in_actions else sys.stderr
    print(workflow_commands.group(title) if in_actions else f"{title}:", file=stream, flush=True)
    try:
        yield lambda line: say(redact(_ESCAPES.sub("", line)), in_actions)
    finally:
        if in_actions:
            print(workflow_commands.endgroup(), file=stream, flush=True)


def say(line: str, in_actions: bool) -> None:
    """One line of the log, at most 1000 characters: where the job's log is read, or on standard
    error; no command to a runner or a terminal."""
    stream = sys.stdout if in_actions else sys.stderr
    print(workflow_commands.safe_log_line(terminal.printable(line, 1000)), file=stream, flush=True)


def refuse(error: AgentEvalsError, summary: Path | None) -> None:
    """Tells of inputs or an event that mean nothing, where people look: annotations and the job
    summary."""
    lines = [*(error.errors if isinstance(error, InvalidInput) else ()), error.sentence]
    for line in lines:
        print(workflow_commands.error(line), flush=True)
    if summary is not None:
        items = "\n".join(f"- {escaping.prose(line, _REASON)}" for line in lines)
        append_summary(summary, f"> [!CAUTION]\n> **agentevals could not begin**\n\n{items}\n")


def tell(review: Review, published: "Published", notices: Sequence[str]) -> None:
    """The review in the log: a folded group a suite, then annotations if no check could carry them,
    notices (the host's first), what the run cost, the verdict."""
    from agentevals_action.reports.view import (
        cost,  # late: a run on this machine folds its log, and has no view
    )

    for suite in review.suites:
        print(workflow_commands.group(terminal.printable(_title(suite))))
        for line in _tests(suite.tests):
            print(workflow_commands.safe_log_line(line))
        print(workflow_commands.endgroup())
    for diagnostic in review.invalid:
        print(workflow_commands.safe_log_line(f"fault: {diagnostic}"))
    for diagnostic in review.warnings:
        print(workflow_commands.safe_log_line(f"warning: {diagnostic}"))
    if published.check_url is None:
        for line in workflow_commands.annotations(published.annotations):
            print(line)
    _tell_notices((*notices, *review.notices))
    if spent := cost.of_review(review).words():
        print(workflow_commands.safe_log_line(spent))
    _tell_decision(review)
    for url in (published.comment_url, published.check_url):
        if url:
            print(url)
    sys.stdout.flush()


def _tell_decision(review: Review) -> None:
    """The outcome with its reasons, and what does not count: a line each."""
    from agentevals_action.reports.view import waivers

    decision = review.decision
    print(
        workflow_commands.safe_log_line(
            f"{decision.outcome}{': ' if decision.reasons else ''}{'; '.join(decision.reasons)}"
        )
    )
    for line in (
        *decision.waived,
        waivers.undecided(test for suite in review.suites for test in suite.tests),
    ):
        if line:
            print(workflow_commands.safe_log_line(terminal.printable(line, 1000)))


def _tell_notices(notices: Iterable[str]) -> None:
    """Each once, above the log as far as GitHub shows them there."""
    said = Notices()
    for notice in notices:
        said.add(notice)
    for number, notice in enumerate(said.told()):
        shown = number < limits.COMMANDS_A_STEP
        print(
            workflow_commands.warning(notice)
            if shown
            else workflow_commands.safe_log_line(terminal.printable(f"notice: {notice}", 1000))
        )


def append_summary(path: Path | None, markdown: str) -> None:
    """Adds to the job summary, where there is one; one that cannot be written is a warning."""
    if path is not None:
        try:
            workflow_commands.append_summary(path, markdown)
        except OSError as error:
            log.warning("the job summary could not be written: %s", error)


def write_outputs(path: Path | None, outputs: Mapping[str, str]) -> None:
    """Gives the action's outputs to the runner, where there is one; when they cannot be written
    that is a warning."""
    if path is not None:
        try:
            workflow_commands.write_outputs(path, outputs)
        except OSError as error:
            log.warning("the outputs could not be written: %s", error)


def _title(suite: SuiteComparison) -> str:
    head = suite.head
    if head is None:
        return suite.path
    counts = {
        "passed": head.passed,
        "borderline": head.borderline,
        "failed": head.failed,
        "errors": head.errored,
    }
    return f"{suite.path}: " + ", ".join(
        f"{count} {word}" for word, count in counts.items() if count or word == "passed"
    )


def _tests(tests: Sequence[TestComparison]) -> Iterable[str]:
    turns, ordered = console.by_conversation(tests)
    for test in ordered:
        if test.head is None:
            yield f"{'–':<10} {terminal.printable(test.id)}  ({_became(test)})"
            continue
        reason = (
            ""
            if test.head.verdict == "pass"
            else f"  {terminal.printable(console.why(test.head), _ANSWER)}"
        )
        turn = console.in_conversation(turns, test.head)
        yield f"{console.mark(test.head):<10} {terminal.printable(test.id)}{turn}  ({_became(test)}){reason}"


def _became(test: TestComparison) -> str:
    from agentevals_action.reports.view import waivers

    return terminal.printable("; ".join(waivers.became(test)), _BECAME)
