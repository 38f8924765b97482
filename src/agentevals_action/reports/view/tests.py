"""Tests as Markdown: in detail with question and answers, or in one line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from agentevals_action.escaping import code, inline, prose
from agentevals_action.formatting import UNKNOWN, counted, delta, error_kind, moved, score
from agentevals_action.model.comparison import ChangeKind, TestComparison
from agentevals_action.model.result import EvaluatorResult, SampleResult, TestResult
from agentevals_action.model.suite import ToolCall
from agentevals_action.reports.view import confirmation, edits, waivers
from agentevals_action.reports.view.answers import Answer, block, show_answers, show_calls
from agentevals_action.reports.view.conversations import TurnNumber
from agentevals_action.reports.view.links import Links, linked, short_names
from agentevals_action.reports.view.listing import Listing, make_listing
from agentevals_action.reports.view.models import ListedTest
from agentevals_action.results.trace_summary import stored_work

_MISSES = 5  # of a test in detail
_KIND = 60  # characters of a kind of error, which may come from another tool
_CELL, _MISS = 60, 44  # characters of names and of misses in the table: two lines each
_SEPARATOR = " · "

Line = Callable[[ListedTest], str]


@dataclass(frozen=True)
class ListLimits:
    """How much of a review a page shows: numbers of items, and characters before escaping.

    `detailed` tests that need a reviewer are shown with question and answers (cut to `answer`
    characters); if they are many, a table before has `rows` of them. `folded` and `quiet` limit the
    folded lists of what changed and of what did not (0: only a count). `items` limits all other
    lists, `text` cuts the texts in a line."""

    name: str
    detailed: int
    answer: int
    rows: int
    folded: int
    quiet: int
    items: int
    text: int


@dataclass(frozen=True)
class Entry:
    """One test in detail. `conversation` is the heading above the first of several turns, `turn`
    is this test's turn below that heading."""

    conversation: str
    turn: str
    test: str
    moved: str
    facts: tuple[str, ...]
    misses: Listing | None
    question: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True)
class TestRow:
    """One test in the table of many that need a reviewer."""

    __test__ = False  # pytest: not a test case

    test: str
    suite: str
    verdict: str
    gate: str
    missed: str


class TestText:
    """Makes Markdown of tests; with several `suites` (paths) each test names its own."""

    __test__ = False  # pytest: not a test case

    def __init__(self, links: Links, limits: ListLimits, suites: Sequence[str]) -> None:
        self._links = links
        self._limits = limits
        self._suite_names = short_names(suites)

    def entries(self, tests: Sequence[ListedTest]) -> tuple[Entry, ...]:
        """Tests in detail; several turns of a conversation are below its heading."""
        return tuple(
            self._entry(one, is_turn=len(group) > 1, is_first=number == 0)
            for group in _conversations(tests)
            for number, one in enumerate(group)
        )

    def rows(self, tests: Sequence[ListedTest]) -> tuple[TestRow, ...]:
        """Tests in a table: what fell, the failed gates and the first miss, in few words."""
        return tuple(map(self._row, tests))

    def _row(self, one: ListedTest) -> TestRow:
        test, head = one.comparison, one.comparison.head
        gates = head.gates_failed if head else ()
        missed = list(dict.fromkeys(head.misses)) if head else []
        why = missed[0] if missed else head.error.message if head and head.error else ""
        # Plain text, because code is wider, and most rows then need a second line.
        name = linked(inline(test.id, _CELL), self._url(one))
        turn = one.turn
        return TestRow(
            test=f"{name} ({turn} of {inline(turn.conversation, _CELL)})" if turn else name,
            suite=inline(self._suite_names[one.suite], _CELL),
            verdict=verdicts(test).replace(" ", "&nbsp;"),
            gate="".join(inline(gate, _CELL) for gate in gates[:1]) + _more(gates),
            missed=(prose(why, min(self._limits.text, _MISS)) if why else UNKNOWN) + _more(missed),
        )

    def _entry(self, one: ListedTest, is_turn: bool, is_first: bool) -> Entry:
        test, turn, limits = one.comparison, one.turn, self._limits
        head, base = test.head, test.base
        misses = list(dict.fromkeys(head.misses)) if head else []
        evidence = self._evidence(test)
        facts = [*_gate_facts(test), *evidence, *_score_fact(test)]
        facts += [] if evidence else _sample_fact(head)
        facts += [*self._error_fact(test), *self._waiver(test), *self._suite(one)]
        if turn and not is_turn:
            facts.append(f"{turn} of the {_conversation_name(turn)}")
        if test.regraded:
            facts.append("re-scored: head's evaluators scored the base's answer")
        question = (head.question if head else "") or (base.question if base else "")
        heading = ""
        if turn and is_turn and is_first:
            heading = f"Conversation {code(turn.conversation)}"
        return Entry(
            conversation=heading,
            turn=str(turn) if turn and is_turn else "",
            test=self.name(one),
            moved=verdicts(test),
            facts=tuple(facts),
            misses=make_listing(
                "Missed",
                [inline(miss, limits.text) for miss in misses[:_MISSES]],
                _MISSES,
                len(misses),
            ),
            question=block(question, limits.answer),
            answers=(*self._answers(base, head), *self._calls(base, head)),
        )

    def listing(
        self, title: str, tests: Sequence[ListedTest], line: Line, limit: int, note: str = ""
    ) -> Listing | None:
        """One line per test, at most `limit` tests; None if there are none."""
        lines = self.lines(tests[:limit], line)
        return make_listing(title, lines, limit, len(tests), note)

    def lines(self, tests: Sequence[ListedTest], line: Line) -> tuple[str, ...]:
        """Tests as list items; several turns of a conversation are a list in one item."""
        items = []
        for group in _conversations(tests):
            first = group[0]
            if len(group) == 1:
                turn = first.turn
                prefix = f"{_conversation_name(turn)}, {turn}: " if turn else ""
                items.append(f"{prefix}{line(first)}")
                continue
            name = first.conversation[1] if first.conversation else ""
            turns = (f"  - {f'{one.turn}: ' if one.turn else ''}{line(one)}" for one in group)
            items.append("\n".join([f"conversation {code(name)}", *turns]))
        return tuple(items)

    def line(self, one: ListedTest) -> str:
        """One test in a line, with its scores."""
        return self._line(one, _score_fact(one.comparison))

    def worse_line(self, one: ListedTest) -> str:
        """A test that failed: its gates or its first miss, and the confirmation."""
        test = one.comparison
        misses = test.head.misses if test.head else ()
        why = _gate_facts(test) or [inline(miss, self._limits.text) for miss in misses[:1]]
        return self._line(one, _score_fact(test), [*why, *self._evidence(test)])

    def evidence_line(self, one: ListedTest) -> str:
        """A test whose drop does not count: the confirmation, and how often its gates held."""
        test = one.comparison
        return self._line(one, (), [*self._evidence(test), *_gate_facts(test)])

    def quarantine_line(self, one: ListedTest) -> str:
        """A test in quarantine: what became of it, and its entry."""
        test = one.comparison
        change = confirmation.change_word(test.change)
        facts = [change, *_gate_facts(test), *self._error_fact(test), *self._waiver(test)]
        return self._line(one, _score_fact(test), facts)

    def error_line(self, one: ListedTest) -> str:
        """A test that ended in an error, or that an error prevented from being confirmed."""
        test = one.comparison
        return self._line(one, _score_fact(test), [*self._evidence(test), *self._error_fact(test)])

    def by_base_line(self, one: ListedTest) -> str:
        """A test as base's evaluators score head's answers: what fails, or why they could not."""
        test = one.comparison
        if test.by_base is None:
            return self.line(one)
        result, facts = test.by_base.result, []
        for gate in edits.failed_by_base(test):
            too = " (on base too)" if gate in test.by_base.failed_on_base else ""
            facts.append(f"required gate {code(gate)} would fail{too}")
        if result.verdict:
            facts.insert(0, f"with base's evaluators {result.verdict}, {score(result.score)}")
        elif result.error:
            facts.append(self._error(result.error.kind, result.error.message))
        return _SEPARATOR.join([self.name(one), verdicts(test), *self._suite(one), *facts])

    def reason_line(self, one: ListedTest) -> str:
        """A test that was not compared, and why."""
        test = one.comparison
        reason = [prose(test.reason, self._limits.text)] if test.reason else []
        return self._line(one, _score_fact(test), reason)

    def name(self, one: ListedTest) -> str:
        """The test's id, linked to the test in the report page; without one to its line on head,
        or on base if head does not have it."""
        return linked(code(one.comparison.id), self._url(one))

    def _url(self, one: ListedTest) -> str | None:
        test = one.comparison
        if url := self._links.report_test(one.suite, test.id):
            return url
        file = self._links.head_file if test.head else self._links.base_file
        result = test.head or test.base
        return file(result.path or result.eval_path, result.line) if result else None

    def _line(self, one: ListedTest, scores: Sequence[str], facts: Sequence[str] = ()) -> str:
        test = one.comparison
        rescored = ["re-scored"] if test.regraded else []
        parts = [self.name(one), verdicts(test), *scores, *rescored, *self._suite(one), *facts]
        return _SEPARATOR.join(parts)

    def _suite(self, one: ListedTest) -> Sequence[str]:
        return [code(one.suite)] if len(self._suite_names) > 1 else []

    def _evidence(self, test: TestComparison) -> Sequence[str]:
        words = confirmation.describe(test)
        if words and test.change is ChangeKind.UNDECIDED and test.failed_gates:
            words = f"undecided whether it regressed: {words}"
        return [prose(words, max(300, self._limits.text))] if words else []

    def _waiver(self, test: TestComparison) -> Sequence[str]:
        if held := test.quarantine:
            until, owner = inline(str(held.expires), 40), code(held.owner, 60)
            reason = inline(held.reason, self._limits.text)
            return [f"until {until}", f"owner {owner}", f"reason: {reason}"]
        # The heading above accepted regressions already names who accepted them.
        is_named = not test.accepted_by or waivers.is_accepted(test)
        return [] if is_named else [f"accepted by {code(test.accepted_by, 60)}"]

    def _error_fact(self, test: TestComparison) -> Sequence[str]:
        error = test.head.error if test.head else None
        return [self._error(error.kind, error.message)] if error else []

    def _error(self, kind: str, message: str) -> str:
        return f"{inline(error_kind(kind), _KIND)}: {prose(message, self._limits.text)}"

    def _answers(self, base: TestResult | None, head: TestResult | None) -> tuple[Answer, ...]:
        limit = self._limits.answer
        if base and head and (before := _answer(base)) and (after := _answer(head)):
            return show_answers(
                before, after, (_answer_verdict(base), _answer_verdict(head)), limit
            )
        sides = [("Base's answer", base), ("Head's answer", head)]
        return tuple(
            Answer(title, _answer_verdict(result), self._answer_text(result))
            for title, result in sides
            if result
        )

    def _calls(self, base: TestResult | None, head: TestResult | None) -> tuple[Answer, ...]:
        """The tool calls of both sides, if head's were not those expected."""
        if not base or not head or not _missed_calls(head.evaluator_results):
            return ()
        return show_calls(_tool_calls(base), _tool_calls(head), self._limits.answer)

    def _answer_text(self, result: TestResult) -> str:
        answer = _answer(result)
        if not answer and result.error:
            return self._error(result.error.kind, result.error.message)
        if not answer and _is_history(result):
            return "*(not stored)*"
        return block(answer, self._limits.answer)


def verdicts(test: TestComparison) -> str:
    """`pass → fail`, or the verdict of the only side."""
    head = (test.head.verdict or "error") if test.head else "removed"
    return f"{test.base.verdict or 'error'} → {head}" if test.base else head


def _more(items: Sequence[str]) -> str:
    """The number of items after the first one."""
    return f" (+{len(items) - 1})" if len(items) > 1 else ""


def _conversations(tests: Sequence[ListedTest]) -> list[list[ListedTest]]:
    """Ordered tests in groups: the turns of one conversation, or one test."""
    groups = groupby(enumerate(tests), lambda pair: pair[1].conversation or pair[0])
    return [[one for _, one in group] for _, group in groups]


def _conversation_name(turn: TurnNumber) -> str:
    return f"conversation {code(turn.conversation)}"


def _shown_sample(result: TestResult) -> SampleResult | None:
    """The sample whose answer represents a result that has no answer itself (stored history)."""
    if result.candidate_answer:
        return None
    answered = [sample for sample in reversed(result.samples) if sample.candidate_answer]
    alike = [sample for sample in answered if sample.verdict == result.verdict]
    return next(iter([*alike, *answered]), None)


def _answer(result: TestResult) -> str:
    shown = _shown_sample(result)
    return shown.candidate_answer if shown else result.candidate_answer


def _answer_verdict(result: TestResult) -> str:
    """`pass, 1.00`, of the sample whose answer is shown."""
    shown = _shown_sample(result)
    scored: TestResult | SampleResult = result
    if shown and shown.verdict != result.verdict:
        scored = shown
    verdict: str = scored.verdict or "error"
    if scored.verdict or scored.score is not None or scored is not result:
        return f"{verdict}, {score(scored.score)}"
    return verdict


def _missed_calls(results: Sequence[EvaluatorResult]) -> bool:
    return any(
        (one.type == "tool_trajectory" and one.misses) or _missed_calls(one.evaluator_results)
        for one in results
    )


def _tool_calls(result: TestResult) -> Sequence[ToolCall] | None:
    """The calls of a sample with the verdict of the result, else of any; None if unknown."""
    stored = [sample for sample in result.samples if sample.output_messages]
    alike = [sample for sample in stored if sample.verdict == result.verdict]
    sample = next(iter([*alike, *stored]), None)
    try:
        return stored_work(sample).trace.tool_calls if sample else None
    except ValueError:  # messages of another tool's results file
        return None


def _is_history(result: TestResult) -> bool:
    return bool(result.samples) and not any(
        sample.output_messages or sample.evaluator_results for sample in result.samples
    )


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
    return facts + [f"required gate {code(gate)} {rate}" for gate, rate in unsteady]


def _gate_note(test: TestComparison, gate: str, rate: str) -> str:
    is_on_base = test.base is not None and any(gate == known.name for known in test.base.gates)
    before = ""
    if rate and is_on_base:
        before = ""
    elif gate in test.gates_lost:
        before = "held on base"
    elif test.base is not None and test.base.verdict is not None:
        if gate in test.base.gates_failed:
            before = "on base too"
        elif not is_on_base:
            before = "new on head"
    note = ", ".join(filter(None, (before, rate)))
    return f" ({note})" if note else ""


def _score_fact(test: TestComparison) -> list[str]:
    base, head = (result.score if result else None for result in (test.base, test.head))
    if base is None and head is None:
        return []
    if test.base is None or test.head is None:
        return [f"score {score(head if test.head else base)}"]
    change = delta(base, head)
    return [f"score {moved(score, base, head)}{f' ({change})' if change else ''}"]


def _sample_fact(head: TestResult | None) -> list[str]:
    if head is None or len(head.samples) < 2:
        return []
    passed = sum(sample.verdict == "pass" for sample in head.samples)
    return [f"{passed} of {counted(len(head.samples), 'sample')} pass"]
