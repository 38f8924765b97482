"""Tests as a report tells them: at length with question and answers, or in one line."""

from collections.abc import Iterable, Sequence

from agentevals_action import formatting
from agentevals_action.escaping import code, fenced, inline, prose
from agentevals_action.formatting import counted, delta, moved, score
from agentevals_action.model.comparison import Change, TestComparison
from agentevals_action.model.result import SampleResult, TestResult
from agentevals_action.reports.view import confirmation, waivers
from agentevals_action.reports.view.grouping import Grouping, Placed, name
from agentevals_action.reports.view.links import Links, linked
from agentevals_action.reports.view.models import Answer, Entry, Limits, Listing

_MISSES = 5  # of a test told at length
_KIND = 60  # characters of a kind of error: one of another tool may be any text
_SEPARATOR = " · "


class Teller:
    """Makes words of tests; `several` says that there is more than one suite, so that each test
    must name its own."""

    def __init__(self, links: Links, limits: Limits, groups: Grouping, several: bool) -> None:
        self._links = links
        self._groups = groups
        self._limits = limits
        self._several = several

    def entries(self, ordered: Sequence[Placed]) -> tuple[Entry, ...]:
        """Tests of head at length, several turns of one conversation under its name."""
        return tuple(
            self._entry(*placed, beneath=len(group) > 1, first=number == 0)
            for group in self._groups.runs(ordered)
            for number, placed in enumerate(group)
        )

    def _entry(self, suite: str, test: TestComparison, beneath: bool, first: bool) -> Entry:
        head, limits = test.head, self._limits
        turn = self._groups.turn(test)
        misses = head.misses if head else ()
        left = len(misses) - _MISSES
        place = [code(suite)] if self._several else []
        borne_out = self._evidence(test)
        facts = [
            *_gate_facts(test),
            *borne_out,
            *_score_fact(test),
            *([] if borne_out else _sample_fact(head)),
            *_error_fact(test, limits),
        ]
        facts += [*self._aside(test), *place]
        facts += [f"{turn.words} of the {name(turn)}"] if turn and not beneath else []
        return Entry(
            conversation=f"C{name(turn)[1:]}" if turn and beneath and first else "",
            turn=turn.words if turn and beneath else "",
            test=self.name(test),
            moved=verdicts(test),
            facts=(
                *facts,
                *(["re-graded: the base's answer by head's evaluators"] if test.regraded else []),
            ),
            misses=Listing(
                "Missed",
                tuple(inline(miss, limits.text) for miss in misses[:_MISSES]),
                f"… and {left:,} more" if left > 0 else "",
            ),
            question=fenced(
                (head.question if head else "") or (test.base.question if test.base else ""),
                limits.answer,
            ),
            answers=tuple(
                self._answer(side, result)
                for side, result in (("Base", test.base), ("Head", head))
                if result
            ),
        )

    def line(self, suite: str, test: TestComparison, why: str = "", scored: bool = True) -> str:
        """One test in a line, with its scores or without; `why` is Markdown."""
        place = [code(suite)] if self._several else []
        again = ["re-graded"] if test.regraded else []
        return _SEPARATOR.join(
            [
                self.name(test),
                verdicts(test),
                *(_score_fact(test) if scored else ()),
                *again,
                *place,
                *([why] if why else []),
            ]
        )

    def worse_line(self, suite: str, test: TestComparison) -> str:
        """One test that got worse, in a line: its gates, or what missed first, and what fresh
        samples said."""
        misses = test.head.misses if test.head else ()
        why = _gate_facts(test) or ([inline(misses[0], self._limits.text)] if misses else [])
        return self.line(suite, test, _SEPARATOR.join([*why, *self._evidence(test)]))

    def evidence_line(self, suite: str, test: TestComparison) -> str:
        """One test whose fall does not count, in a line: what fresh samples said, and how often its
        gates held."""
        return self.line(
            suite, test, _SEPARATOR.join([*self._evidence(test), *_gate_facts(test)]), scored=False
        )

    def held_line(self, suite: str, test: TestComparison) -> str:
        """One test in quarantine, in a line: what became of it, and its entry."""
        error = _error_fact(test, self._limits)
        return self.line(
            suite,
            test,
            _SEPARATOR.join(
                [confirmation.word(test.change), *_gate_facts(test), *error, *self._aside(test)]
            ),
        )

    def error_line(self, suite: str, test: TestComparison) -> str:
        """One test that ended in an error on head: kind and message; or that could not be confirmed
        for one."""
        return self.line(
            suite, test, _SEPARATOR.join([*self._evidence(test), *_error_fact(test, self._limits)])
        )

    def reason_line(self, suite: str, test: TestComparison) -> str:
        """One test with the reason why it was not compared."""
        return self.line(suite, test, prose(test.reason, self._limits.text) if test.reason else "")

    def name(self, test: TestComparison) -> str:
        """The test's id, linked to its line on head, or on base when it is gone."""
        if test.head:
            return linked(
                code(test.id),
                self._links.head_file(test.head.path or test.head.eval_path, test.head.line),
            )
        base = test.base
        return linked(
            code(test.id),
            self._links.base_file(base.path or base.eval_path, base.line) if base else None,
        )

    def _evidence(self, test: TestComparison) -> Sequence[str]:
        told = confirmation.words(test)
        if told and test.change is Change.UNDECIDED and waivers.gates_failed(test):
            told = f"undecided whether it regressed: {told}"
        return [prose(told, max(300, self._limits.text))] if told else []

    def _aside(self, test: TestComparison) -> Sequence[str]:
        if test.quarantine:
            held, limit = test.quarantine, self._limits.text
            return [
                f"until {inline(str(held.expires), 40)}",
                f"owner {code(held.owner, 60)}",
                f"reason: {inline(held.reason, limit)}",
            ]
        # Alone its heading says so.
        return (
            [f"accepted by {code(test.accepted_by, 60)}"]
            if test.accepted_by and not waivers.accepted(test)
            else []
        )

    def _answer(self, side: str, result: TestResult) -> Answer:
        shown = _shown(result)
        answer = shown.candidate_answer if shown else result.candidate_answer
        text = (
            fenced(answer, self._limits.answer)
            if answer or not _is_history(result)
            else "*(not stored)*"
        )
        told = (
            f"{result.verdict or 'error'}, {score(result.score)}"
            if result.verdict or result.score is not None
            else "error"
        )
        if shown and shown.verdict != result.verdict:
            told = f"{shown.verdict or 'error'}, {score(shown.score)}"
        if not answer and result.error:
            text = f"{inline(formatting.error_kind(result.error.kind), _KIND)}: {prose(result.error.message, self._limits.text)}"
        return Answer(side, told, text)


def verdicts(test: TestComparison) -> str:
    """`pass → fail`, or what there is of it."""
    head = (test.head.verdict or "error") if test.head else "gone"
    return f"{test.base.verdict or 'error'} → {head}" if test.base else head


def listing(title: str, lines: Iterable[str], number: int, limit: int) -> Listing | None:
    """At most `limit` of `number` lines; None when there is nothing to list."""
    if not number:
        return None
    shown = tuple(line for _, line in zip(range(limit), lines, strict=False))
    left = number - len(shown)
    return Listing(title, shown, f"… and {left:,} more" if left and shown else "")


def _shown(result: TestResult) -> SampleResult | None:
    """The sample whose answer stands for a result that has none of its own: of a history the latest
    answers alone are kept."""
    answered = (
        [sample for sample in reversed(result.samples) if sample.candidate_answer]
        if not result.candidate_answer
        else []
    )
    return next(
        (sample for sample in answered if sample.verdict == result.verdict),
        answered[0] if answered else None,
    )


def _is_history(result: TestResult) -> bool:
    return bool(result.samples) and not any(
        sample.output_messages or sample.evaluator_results for sample in result.samples
    )


def _gate_facts(test: TestComparison) -> Sequence[str]:
    """The gates that failed, and those that fail now and then."""
    if not test.head:
        return []
    rates, failed = confirmation.rates(test), test.head.gates_failed
    facts = [
        f"required gate {code(gate)} failed{_before(test, gate, rates.get(gate, ''))}"
        for gate in failed
    ]
    return facts + [
        f"required gate {code(gate)} {told}" for gate, told in rates.items() if gate not in failed
    ]


def _before(test: TestComparison, gate: str, rate: str) -> str:
    if rate and test.base and any(gate == known.name for known in test.base.gates):
        return f" ({rate})"
    before = _on_base(test, gate)
    told = ", ".join(filter(None, (before, rate)))
    return f" ({told})" if told else ""


def _on_base(test: TestComparison, gate: str) -> str:
    if gate in test.gates_lost:
        return "held on base"
    if test.base is None or test.base.verdict is None:
        return ""
    if gate in test.base.gates_failed:
        return "on base too"
    return "" if any(gate == known.name for known in test.base.gates) else "new on head"


def _score_fact(test: TestComparison) -> Sequence[str]:
    base, head = (result.score if result else None for result in (test.base, test.head))
    if base is None and head is None:
        return []
    change = delta(base, head)
    both = test.base is not None and test.head is not None
    return [
        f"score {moved(score, base, head) if both else score(head if test.head else base)}{f' ({change})' if change else ''}"
    ]


def _sample_fact(head: TestResult | None) -> Sequence[str]:
    if head is None or len(head.samples) < 2:
        return []
    passed = sum(sample.verdict == "pass" for sample in head.samples)
    return [f"{passed} of {counted(len(head.samples), 'sample')} pass"]


def _error_fact(test: TestComparison, limits: Limits) -> Sequence[str]:
    error = test.head.error if test.head else None
    return (
        [f"{inline(formatting.error_kind(error.kind), _KIND)}: {prose(error.message, limits.text)}"]
        if error
        else []
    )
