"""The facts of a test that the comment states: gates, score, answers and tool calls."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agentevals_action.escaping import plain
from agentevals_action.formatting import delta, moved, score
from agentevals_action.model.comparison import ChangeKind, TestComparison
from agentevals_action.model.messages import ToolCall
from agentevals_action.model.result import TestResult, shown_sample
from agentevals_action.reports.view import confirmation
from agentevals_action.results.trace_summary import stored_work

_CALLS = 5  # tool calls that fit into the characters of an answer, however long they are
_BEFORE = 100  # characters that are shown before the first difference of two answers


@dataclass(frozen=True)
class Part:
    """A text of a side: its `title`, a `note` about it, and the text; None if it is not stored."""

    title: str
    note: str
    text: str | None


def describe_evidence(test: TestComparison) -> str:
    """The result of its confirmation; empty if there was none."""
    words = confirmation.describe(test)
    is_open = words and test.change is ChangeKind.UNDECIDED and test.failed_gates
    return f"undecided whether it regressed: {words}" if is_open else words


def describe_gates(test: TestComparison) -> list[tuple[str, str]]:
    """The gates that failed, then those that fail in some samples, each with what is known."""
    if not test.head:
        return []
    rates, failed = confirmation.gate_rates(test), test.head.gates_failed
    # The result of the confirmation has the same numbers.
    shown = {} if confirmation.describe(test) else rates
    facts = [(gate, f"failed{_gate_note(test, gate, shown.get(gate, ''))}") for gate in failed]
    return [*facts, *(fact for fact in rates.items() if fact[0] not in failed)]


def _gate_note(test: TestComparison, gate: str, rate: str) -> str:
    """How often a failed gate held, or whether it held on base."""
    base = test.base
    if not rate and gate in test.gates_lost:
        rate = "held on base"
    elif not rate and base and base.verdict:
        is_known = any(gate == on_base.name for on_base in base.gates)
        rate = "on base too" if gate in base.gates_failed else "" if is_known else "new on head"
    return f" ({rate})" if rate else ""


def describe_score(test: TestComparison) -> str:
    """`score 1.00 → 0.20 (−0.80)`; empty without a score."""
    base, head = (result.score if result else None for result in (test.base, test.head))
    if base is None and head is None:
        return ""
    if test.base is None or test.head is None:
        return f"score {score(head if test.head else base)}"
    change = delta(base, head)
    return f"score {moved(score, base, head)}{f' ({change})' if change else ''}"


def compare_answers(test: TestComparison, limit: int) -> list[Part]:
    """The answers of the sides: once if they are equal, else each from shortly before the first
    difference; `limit` is in characters of an answer."""
    base, head = test.base, test.head
    if base and head and base.candidate_answer == head.candidate_answer != "":
        both = f"base {_describe_scored(base)}; head {_describe_scored(head)}"
        return [Part("Both answers are equal", both, base.candidate_answer)]
    start = 0
    if base and head and base.candidate_answer and head.candidate_answer:
        start = _first_difference(base.candidate_answer, head.candidate_answer) - _BEFORE
    return [
        Part(f"{name} answer", _describe_scored(side), _answer(side, start, limit))
        for name, side in (("Base's", base), ("Head's", head))
        if side
    ]


def _first_difference(base: str, head: str) -> int:
    """The number of characters that two texts have in common at their start."""
    pairs = enumerate(zip(base, head, strict=False))
    return next((at for at, (old, new) in pairs if old != new), min(len(base), len(head)))


def _answer(side: TestResult, start: int, limit: int) -> str | None:
    """The answer from `start` on; None where the stored row of an earlier run has none."""
    text = side.candidate_answer
    is_fresh = any(sample.evaluator_results for sample in side.samples)
    if not text and side.verdict and not is_fresh:
        return None
    if len(text) <= limit or start + 2 * _BEFORE <= limit:
        return text
    return f"… ({start:,} equal characters)\n{text[start:]}"


def compare_calls(test: TestComparison, limit: int) -> list[Part]:
    """The tool calls that one side alone made; all of both if only their order differs. `limit` is
    in characters of a side."""
    base_calls, head_calls = _made_calls(test.base), _made_calls(test.head)
    if base_calls is None or head_calls is None:
        return []
    base_keys, head_keys = ([key for key, _ in calls] for calls in (base_calls, head_calls))
    if base_keys == head_keys:
        return []
    is_reordered = Counter(base_keys) == Counter(head_keys)
    parts = []
    sides = (("Base's", base_calls, head_keys), ("Head's", head_calls, base_keys))
    for whose, listed, other_keys in sides:
        only = [line for _, line in listed] if is_reordered else _lines_without(listed, other_keys)
        number = f"{len(only):,} of {len(listed):,}"
        if only:
            lines = "\n".join(plain(line, limit // _CALLS) for line in only)
            note = "the same in another order" if is_reordered else number
            parts.append(Part(f"{whose} tool calls that differ", note, lines))
    return parts


def _lines_without(calls: Sequence[tuple[str, str]], other_keys: Iterable[str]) -> list[str]:
    """The lines of the calls that the other side did not make, or made less often."""
    left = Counter(key for key, _ in calls) - Counter(other_keys)
    lines = []
    for key, line in calls:
        if left[key] > 0:
            left[key] -= 1
            lines.append(line)
    return lines


def _made_calls(side: TestResult | None) -> Sequence[tuple[str, str]] | None:
    """The calls of the sample that is shown, as `tool {"argument": 1}`, each with a line that also
    has its reply; None if unknown."""
    sample = shown_sample(side.samples, side.verdict) if side and side.samples else None
    if not sample or not sample.output_messages:  # the row of an earlier run has no answers
        return None
    try:
        calls = stored_work(sample).trace.made_calls
    except ValueError:  # the row of a shard that another program wrote
        return None
    return None if calls is None else [*map(_describe_call, calls)]


def _describe_call(call: ToolCall) -> tuple[str, str]:
    key = f"{call.name} {_as_json(call.arguments or {})}"
    if call.output is None:
        return key, key
    reply = call.output if isinstance(call.output, str) else _as_json(call.output)
    return key, f"{key} → {reply}"


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _describe_scored(result: TestResult) -> str:
    """`pass, 1.00`, or its state."""
    figure = "" if result.score is None else f", {score(result.score)}"
    return f"{result.state}{figure}"
