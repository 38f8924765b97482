"""The log of a job: one folded group a suite, annotations where no check stands, outputs and summary for the runner."""

import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agentevals_action import console, escaping
from agentevals_action.errors import AgentEvalsError, InvalidInput
from agentevals_action.hosts import workflow_commands
from agentevals_action.model.comparison import Review, SuiteComparison, TestComparison
from agentevals_action.publish import Published
from agentevals_action.redact import Redactor

log = logging.getLogger(__name__)

_REASON = 500  # characters of a reason in the job summary
_ANSWER = 300  # characters of an answer that a line of the log shows


class _SafeFormatter(logging.Formatter):
    """No line of a log record can be a command to the runner."""

    def format(self, record: logging.LogRecord) -> str:
        return workflow_commands.safe_log_line(super().format(record))


def begin(redactor: Redactor) -> None:
    """From here on the log has no secrets and no commands in it."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(redactor.filter())
        handler.setFormatter(_SafeFormatter("%(levelname)s: %(message)s"))


def refuse(error: AgentEvalsError, summary: Path | None) -> None:
    """Tells of inputs or an event that mean nothing, where people look: annotations and the job summary."""
    lines = [*(error.faults if isinstance(error, InvalidInput) else ()), f"{error}; {error.hint}".rstrip("; ")]
    for line in lines:
        print(workflow_commands.error(line), flush=True)
    if summary is not None:
        items = "\n".join(f"- {escaping.prose(line, _REASON)}" for line in lines)
        append_summary(summary, f"> [!CAUTION]\n> **agentevals could not begin**\n\n{items}\n")


def tell(review: Review, published: Published, notices: Sequence[str]) -> None:
    """The review in the log: a folded group a suite, then annotations if no check could carry them, notices, the verdict."""
    for suite in review.suites:
        print(workflow_commands.group(console.printable(_title(suite))))
        for line in _tests(suite.tests):
            print(workflow_commands.safe_log_line(line))
        print(workflow_commands.endgroup())
    for fault in review.invalid:
        print(workflow_commands.safe_log_line(f"fault: {fault}"))
    for fault in review.warnings:
        print(workflow_commands.safe_log_line(f"warning: {fault}"))
    if published.check_url is None:
        for line in workflow_commands.annotations(published.annotations):
            print(line)
    for notice in notices:
        print(workflow_commands.warning(notice))
    decision = review.decision
    print(workflow_commands.safe_log_line(f"{decision.outcome}{': ' if decision.reasons else ''}{'; '.join(decision.reasons)}"))
    for url in (published.comment_url, published.check_url):
        if url:
            print(url)
    sys.stdout.flush()


def append_summary(path: Path | None, markdown: str) -> None:
    """Adds to the job summary, where there is one; one that cannot be written is a warning."""
    if path is not None:
        try:
            workflow_commands.append_summary(path, markdown)
        except OSError as error:
            log.warning("the job summary could not be written: %s", error)


def write_outputs(path: Path | None, outputs: Mapping[str, str]) -> None:
    """Gives the action's outputs to the runner, where there is one; when they cannot be written that is a warning."""
    if path is not None:
        try:
            workflow_commands.write_outputs(path, outputs)
        except OSError as error:
            log.warning("the outputs could not be written: %s", error)


def _title(suite: SuiteComparison) -> str:
    head = suite.head
    if head is None:
        return suite.path
    counts = {"passed": head.passed, "borderline": head.borderline, "failed": head.failed, "errors": head.errored}
    return f"{suite.path}: " + ", ".join(f"{count} {word}" for word, count in counts.items() if count or word == "passed")


def _tests(tests: Iterable[TestComparison]) -> Iterable[str]:
    for test in tests:
        if test.head is None:
            yield f"{'–':<10} {console.printable(test.id)}  ({test.change})"
            continue
        reason = "" if test.head.verdict == "pass" else f"  {console.printable(console.why(test.head), _ANSWER)}"
        yield f"{console.mark(test.head):<10} {console.printable(test.id)}  ({test.change}){reason}"
