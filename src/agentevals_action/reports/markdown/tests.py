"""Tests as Markdown: in a line, or in detail with question, answers and misses."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentevals_action.escaping import code, fenced, inline, plain, prose
from agentevals_action.formatting import (
    counted,
    delta,
    error_kind,
    first_line,
    joined,
    moved,
    score,
    shortened,
)
from agentevals_action.model.comparison import ChangeKind, TestComparison
from agentevals_action.model.result import ErrorInfo, TestResult, shown_sample
from agentevals_action.reports.view import confirmation
from agentevals_action.reports.view.links import Links, linked
from agentevals_action.reports.view.models import ListedTest, Tests
from agentevals_action.results.trace_summary import stored_work

_GATES = 5  # of a test
_MISSES = 5  # of a test in detail
_CALLS = 5  # tool calls that fit into the characters of an answer, however long they are
_NAMES = 5  # of tests with the same error
_KIND = 60  # characters of a kind of error, which may come from another tool
#: Columns of a block that fit into a comment; GitHub does not wrap the lines of a block.
_WIDTH = 95
_BEFORE = 100  # characters that are shown before the first difference of two answers
_SEPARATOR = " · "


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


@dataclass(frozen=True)
class Answer:
    """An answer: its `title` and verdict in words, and its `text`, a fenced block."""

    title: str
    verdict: str
    text: str


@dataclass(frozen=True)
class CommentedTest:
    """One test in detail; what is unknown is empty. `output` is that of a program that failed,
    `calls` are the tool calls that differ."""

    test: str
    verdicts: str
    facts: str
    misses: tuple[str, ...]
    output: str
    question: str
    answers: tuple[Answer, ...]
    calls: tuple[Answer, ...]


class TestText:
    """Makes Markdown of tests, each with the path of its suite if there are several. `runners` are
    the names of the suites' runners by their paths, empty for our own suites."""

    __test__ = False  # pytest: not a test case

    def __init__(self, links: Links, limits: Limits, runners: Mapping[str, str]) -> None:
        self._links = links
        self._limits = limits
        self._runners = runners

    def line(self, listed: ListedTest) -> str:
        """One test in a line, with its first miss."""
        head = listed.comparison.head
        misses = _misses(head)
        missed = []
        if misses and head and head.verdict != "pass":
            more = f" (+{len(misses) - 1})" if len(misses) > 1 else ""
            missed.append(f"missed: {prose(misses[0], self._limits.text)}{more}")
        parts = [self.name(listed), verdicts(listed.comparison), *self._facts(listed), *missed]
        return _SEPARATOR.join(parts)

    def entry(self, listed: ListedTest) -> CommentedTest:
        """One test in detail."""
        test, limits = listed.comparison, self._limits
        misses = [f"missed: {inline(miss, limits.text)}" for miss in _misses(test.head)]
        question = _question(test)
        has_answer = any(side and side.candidate_answer for side in (test.base, test.head))
        return CommentedTest(
            test=self.name(listed),
            verdicts=verdicts(test),
            facts=_SEPARATOR.join(self._facts(listed, in_detail=True)),
            misses=shortened(misses, _MISSES),
            output=self.output(test.head.error.message if test.head and test.head.error else ""),
            question=question and _block(question, limits.answer),
            answers=_answers(test.base, test.head, limits.answer) if question or has_answer else (),
            calls=_calls(test.base, test.head, limits.answer),
        )

    def of_error(self, error: ErrorInfo, tests: Tests) -> str:
        """The error that several tests share, their first names, and the output."""
        names = shortened([self.name(test) for test in tests], _NAMES)
        facts = f"{self._error(error, in_detail=True)}{_SEPARATOR}{', '.join(names)}"
        return f"{facts}\n\n{self.output(error.message)}"

    def output(self, message: str) -> str:
        """The lines of an error below its first, which are the output of a program."""
        lines = message.partition("\n")[2]
        return lines and _block(lines, self._limits.answer)

    def suite(self, path: str, url: str | None = None) -> str:
        """The path of a suite, as a link if there is a URL, with its runner."""
        runner, shown = self._runners.get(path), linked(code(path), url)
        return f"{shown} ({inline(runner, 60)})" if runner else shown

    def name(self, listed: ListedTest) -> str:
        """The id of a test; a link to it in the report page, else to its file."""
        test = listed.comparison
        url = self._links.report_test(listed.suite, test.id)
        if url is None and (result := listed.result):
            file = self._links.head_file if test.head else self._links.base_file
            url = file(result.path or result.eval_path, result.line)
        return linked(code(test.id), url)

    def _facts(self, listed: ListedTest, *, in_detail: bool = False) -> list[str]:
        """What is known of a test besides its verdicts, the most important first."""
        test, limits = listed.comparison, self._limits
        facts = _gate_facts(test)
        if words := confirmation.describe(test):
            is_open = test.change is ChangeKind.UNDECIDED and test.failed_gates
            words = f"undecided whether it regressed: {words}" if is_open else words
            facts.append(prose(words, max(300, limits.text)))
        elif test.head and len(test.head.samples) > 1:
            passed = sum(sample.verdict == "pass" for sample in test.head.samples)
            facts.append(f"{passed} of {counted(len(test.head.samples), 'sample')} pass")
        # A runner of others decides itself; its verdict is no score.
        facts += [] if self._runners.get(listed.suite) else _score_fact(test)
        if test.head and test.head.error:
            facts.append(self._error(test.head.error, in_detail=in_detail))
        elif test.reason and not words:
            facts.append(f"not compared: {prose(test.reason, limits.text)}")
        facts += self._by_base(test)
        if lost := [code(name) for name in test.evaluators_lost]:
            facts.append(f"{joined(shortened(lost, _GATES))} passed on base and failed on head")
        if test.accepted_by:
            facts.append(f"accepted by {code(test.accepted_by, 60)}")
        if test.rescored:
            facts.append("re-scored: head's evaluators scored the base's answer")
        facts += [self.suite(listed.suite)] if len(self._runners) > 1 else []
        if turn := listed.turn:
            facts.append(f"{turn} of the conversation {code(turn.conversation)}")
        return facts

    def _by_base(self, test: TestComparison) -> list[str]:
        """What base's evaluators make of head's answer, if that differs."""
        found = test.by_base
        if found is None or not (found.is_worse or found.result.error):
            return []
        result = found.result
        if result.verdict is None and result.error:
            return [f"not scored with base's evaluators: {self._error(result.error)}"]
        facts = [f"with base's evaluators {result.verdict}, {score(result.score)}"]
        for gate in result.gates_failed[:_GATES]:
            too = " (on base too)" if gate in found.failed_on_base else ""
            facts.append(f"required gate {code(gate)} would fail{too}")
        return facts

    def _error(self, error: ErrorInfo, *, in_detail: bool = False) -> str:
        """An error in a line; in detail without the lines that `_output` shows."""
        message = first_line(error.message) if in_detail else error.message
        return f"{inline(error_kind(error.kind), _KIND)}: {prose(message, self._limits.text)}"


def verdicts(test: TestComparison) -> str:
    """`pass → fail`, or the verdict of the only side."""
    head = (test.head.verdict or "error") if test.head else "removed"
    return f"{test.base.verdict or 'error'} → {head}" if test.base else head


def _misses(head: TestResult | None) -> Sequence[str]:
    return tuple(dict.fromkeys(head.misses)) if head else ()


def _question(test: TestComparison) -> str:
    asked = [side.question for side in (test.head, test.base) if side and side.question]
    return asked[0] if asked else ""


def _answers(base: TestResult | None, head: TestResult | None, limit: int) -> tuple[Answer, ...]:
    """The answers of the sides: once if they are equal, else each from shortly before the first
    difference; `limit` is in characters of an answer."""
    sides = [(name, side) for name, side in (("Base's", base), ("Head's", head)) if side]
    if base and head and base.candidate_answer == head.candidate_answer != "":
        both = f"base {_scored(base)}; head {_scored(head)}"
        return (Answer("Both answers are equal", both, _block(base.candidate_answer, limit)),)
    start = 0
    if base and head and base.candidate_answer and head.candidate_answer:
        start = _first_difference(base.candidate_answer, head.candidate_answer) - _BEFORE
    return tuple(
        Answer(f"{name} answer", _scored(side), _answer(side, start, limit)) for name, side in sides
    )


def _first_difference(base: str, head: str) -> int:
    """The number of characters that two texts have in common at their start."""
    pairs = enumerate(zip(base, head, strict=False))
    return next((at for at, (old, new) in pairs if old != new), min(len(base), len(head)))


def _answer(side: TestResult, start: int, limit: int) -> str:
    """The answer from `start` on; the stored row of an earlier run may have none."""
    text = side.candidate_answer
    is_fresh = any(sample.evaluator_results for sample in side.samples)
    if not text and side.verdict and not is_fresh:
        return "*(not stored)*"
    if len(text) <= limit or start + 2 * _BEFORE <= limit:
        return _block(text, limit)
    return _block(f"… ({start:,} equal characters)\n{text[start:]}", limit)


def _calls(base: TestResult | None, head: TestResult | None, limit: int) -> tuple[Answer, ...]:
    """The tool calls that one side alone made; all of both if only their order differs."""
    old, new = _made_calls(base), _made_calls(head)
    if old is None or new is None or old == new:
        return ()
    is_reordered = Counter(old) == Counter(new)
    found = []
    for whose, own, other in (("Base's", old, new), ("Head's", new, old)):
        only = own if is_reordered else list((Counter(own) - Counter(other)).elements())
        number = f"{len(only):,} of {len(own):,}"
        if only:
            lines = "\n".join(plain(call, limit // _CALLS) for call in only)
            words = "the same in another order" if is_reordered else number
            found.append(Answer(f"{whose} tool calls that differ", words, _block(lines, limit)))
    return tuple(found)


def _made_calls(side: TestResult | None) -> list[str] | None:
    """The calls of the sample that is shown, as `tool {"argument": 1}`; None if unknown."""
    sample = shown_sample(side.samples, side.verdict) if side and side.samples else None
    if not sample or not sample.output_messages:  # the row of an earlier run has no answers
        return None
    try:
        calls = stored_work(sample).trace.made_calls
    except ValueError:  # the row of a shard that another program wrote
        return None
    if calls is None:
        return None
    return [
        f"{call.name} {json.dumps(call.arguments or {}, ensure_ascii=False, sort_keys=True)}"
        for call in calls
    ]


def _block(text: str, limit: int) -> str:
    """A fenced block that is wrapped at 95 columns, cut to `limit` characters."""
    return fenced(text, limit, width=_WIDTH)


def _scored(result: TestResult) -> str:
    """`pass, 1.00`, or `error`."""
    figure = "" if result.score is None else f", {score(result.score)}"
    return f"{result.verdict or 'error'}{figure}"


def _gate_facts(test: TestComparison) -> list[str]:
    """The gates that failed, then those that fail in some samples."""
    if not test.head:
        return []
    rates, failed = confirmation.gate_rates(test), test.head.gates_failed
    # The result of the confirmation has the same numbers.
    shown = {} if confirmation.describe(test) else rates
    facts = [
        f"required gate {code(gate)} failed{_gate_note(test, gate, shown.get(gate, ''))}"
        for gate in failed
    ]
    unsteady = (item for item in rates.items() if item[0] not in failed)
    facts += [f"required gate {code(gate)} {rate}" for gate, rate in unsteady]
    return list(shortened(facts, _GATES))


def _gate_note(test: TestComparison, gate: str, rate: str) -> str:
    """How often a failed gate held, or whether it held on base."""
    base = test.base
    if not rate and gate in test.gates_lost:
        rate = "held on base"
    elif not rate and base and base.verdict:
        is_known = any(gate == known.name for known in base.gates)
        rate = "on base too" if gate in base.gates_failed else "" if is_known else "new on head"
    return f" ({rate})" if rate else ""


def _score_fact(test: TestComparison) -> list[str]:
    base, head = (result.score if result else None for result in (test.base, test.head))
    if base is None and head is None:
        return []
    if test.base is None or test.head is None:
        return [f"score {score(head if test.head else base)}"]
    change = delta(base, head)
    return [f"score {moved(score, base, head)}{f' ({change})' if change else ''}"]
