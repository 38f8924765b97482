"""The tests of a review as the script of the report page reads them (JSON).

Every test has a row; tests that changed or failed also have their details, and the others as far
as the limits allow."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pydantic import TypeAdapter

from agentevals_action.escaping import plain
from agentevals_action.formatting import ERROR_KINDS, error_kind
from agentevals_action.model.comparison import ChangeKind, TestComparison
from agentevals_action.model.result import Key, TestResult
from agentevals_action.model.skill import name_suite
from agentevals_action.reports.page.layout import TEXT, json_in_html, markdown_blocks, shown_text
from agentevals_action.reports.view.groups import GROUPS, needs_review
from agentevals_action.reports.view.models import ReportedTest, ReportView
from agentevals_action.reports.view.sentences import describe_change
from agentevals_action.reports.view.variants import name_arms

#: Rows in the page, the most tests with complete details, and the characters of all details and of
#: all pictures.
MAX_ROWS = 20_000
MAX_COMPLETE = 1_000
MAX_DETAILS = 4_000_000
MAX_PICTURES = 4_000_000
#: Characters of a text in a row.
TEXT_IN_ROW = 200

#: The pictures that the page shows.
_PICTURE = re.compile("data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*")
_RESULT = TypeAdapter(TestResult)
#: Changes that nobody has to look at.
_QUIET = frozenset({ChangeKind.UNCHANGED, ChangeKind.NEW, ChangeKind.STILL_FAILING})


#: What the page shows of a side besides its input; the names in it are those of `results.jsonl`.
_SIDE = {"target", "path", "line", "error", "samples", "pairs"}
_NOT_SHOWN: Any = {"samples": {"__all__": {"spent", "cached"}}}


@dataclass(frozen=True)
class PageData:
    """`json` is the data as JSON that can stand in HTML; `listed` are its tests, `left` counts the
    tests that have no row."""

    json: str
    listed: Sequence[ReportedTest]
    left: int


def page_data(view: ReportView) -> PageData:
    """The data of a review, the tests that changed or failed first."""
    ordered = sorted(view.tests, key=_rank)
    listed = ordered[:MAX_ROWS]
    suites = {path: number for number, path in enumerate(sorted({test.suite for test in listed}))}
    evaluators = _evaluators(listed)
    groups: defaultdict[Key, list[int]] = defaultdict(list)
    for number, group in enumerate(GROUPS):
        for test in view.groups[group.key]:
            groups[test.suite, test.comparison.id].append(number)
    by_test = _variants(view)
    is_small = len(view.tests) <= MAX_COMPLETE
    messages: dict[str, int] = {}  # of all inputs, each once: tests share system prompts
    pictures: dict[str, int] = {}
    rows, left_over = [], MAX_DETAILS
    for test in listed:
        of_test = groups[test.suite, test.comparison.id]
        row = json_in_html({**_row(test, suites, evaluators), "groups": of_test})
        if left_over > 0 and (is_small or not _is_quiet(test)):
            message_count = len(messages)
            fields = _details(test, messages, pictures)
            if arms := by_test[test.suite, test.comparison.id]:
                fields["variants"] = arms
            details = json_in_html(fields)
            added = islice(reversed(messages), len(messages) - message_count)
            left_over -= len(details) + sum(map(len, added))
            if left_over >= 0:
                row = f'{row[:-1]},"details":{details}}}'
        rows.append(row)
    names = json_in_html(
        {
            "suites": list(suites),
            "names": list(map(name_suite, suites)),
            "evaluators": list(evaluators),
            "groups": [{"key": group.key, "label": group.label} for group in GROUPS],
            "hasBase": view.review.has_base,
            "errorKinds": ERROR_KINDS,
            "links": {
                "base": _folder(view.links.base_file("x")),
                "head": _folder(view.links.head_file("x")),
            },
        }
    )
    text = f'{names[:-1]},"messages":[{",".join(messages)}],"tests":[{",".join(rows)}]'
    text += f',"pictures":{json.dumps(list(pictures))}}}'
    total = sum(suite.head.total for suite in view.review.suites if suite.head)
    return PageData(text, listed, max(total, len(ordered)) - len(listed))


def _variants(view: ReportView) -> Mapping[Key, list[dict[str, Any]]]:
    """The answers to each test in the variants."""
    by_test: defaultdict[Key, list[dict[str, Any]]] = defaultdict(list)
    for suite in view.review.suites:
        for comparison in suite.variants:
            arm = name_arms(comparison.run.variant)[1].replace("`", "")
            name = {"name": arm[:1].upper() + arm[1:]}
            for test in comparison.tests:
                if side := _side(test.variant, {}, {}):
                    by_test[suite.path, test.id].append(
                        {**side, **(_figures(test.variant) or {}), **name}
                    )
    return by_test


def _folder(url: str | None) -> str | None:
    return url.removesuffix("x") if url else None


def _rank(listed: ReportedTest) -> int:
    """The place of a test in the list: failed gates, regressions, errors, other failures, other
    changes, the rest."""
    test, head = listed.comparison, listed.comparison.head
    ranks = (
        bool(test.failed_gates),
        needs_review(test),
        test.change is ChangeKind.HEAD_ERROR,
        head is not None and head.verdict != "pass",
        not _is_quiet(listed),
        True,
    )
    return ranks.index(True)


def _is_quiet(listed: ReportedTest) -> bool:
    """Whether a test neither changed nor failed."""
    test = listed.comparison
    failed = test.head is not None and test.head.verdict != "pass"
    return test.change in _QUIET and not failed and not needs_review(test)


def _evaluators(listed: Iterable[ReportedTest]) -> dict[str, int]:
    names = {result.name for test in listed for side in _sides(test) for result in _results(side)}
    return {name: number for number, name in enumerate(sorted(names))}


def _sides(listed: ReportedTest) -> Iterator[TestResult]:
    return (side for side in (listed.comparison.base, listed.comparison.head) if side)


def _results(side: TestResult) -> Iterator[Any]:
    return (result for sample in side.samples[:1] for result in sample.evaluator_results)


def _row(
    listed: ReportedTest, suites: Mapping[str, int], evaluators: Mapping[str, int]
) -> dict[str, Any]:
    test = listed.comparison
    head = test.head
    used = sorted({evaluators[result.name] for side in _sides(listed) for result in _results(side)})
    row = {
        "suite": suites[listed.suite],
        "id": test.id,
        "change": test.change.value,
        "base": _figures(test.base),
        "head": _figures(head),
        "needsReview": needs_review(test),
        "failedGates": list(head.gates_failed) if head else [],
        "gates": list(dict.fromkeys(gate.name for gate in head.gates)) if head else [],
        "evaluators": used,
        "conversation": listed.conversation[1] if listed.conversation else None,
        "turn": listed.turn.number if listed.turn else None,
        "turns": listed.turn.total if listed.turn else None,
        "miss": explain_state(test),
    }
    return {key: value for key, value in row.items() if value or (value == 0 and key == "suite")}


def explain_state(test: TestComparison) -> str:
    """Why a test is not fine, in a line: the first miss, the error, or why it is not compared."""
    head = test.head
    reason = test.reason or ""
    if head and head.misses:
        reason = head.misses[0]
    elif head and head.error:
        reason = f"{error_kind(head.error.kind)}: {head.error.message}"
    return plain(reason, TEXT_IN_ROW)


def _figures(result: TestResult | None) -> dict[str, Any] | None:
    """Verdict, score (0-1), cost (US dollars) and time (milliseconds) of one side, without what is
    unknown."""
    if result is None:
        return None
    trace = result.trace_summary
    figures = {
        "verdict": result.state,
        "score": result.score,
        "cost": trace.cost_usd if trace else None,
        "time": trace.duration_ms if trace and trace.duration_ms else result.duration_ms,
        "tokens": trace.total_tokens if trace else None,
    }
    return {key: value for key, value in figures.items() if value is not None}


def _details(
    listed: ReportedTest, messages: dict[str, int], pictures: dict[str, int]
) -> dict[str, Any]:
    """The details of a test; `messages` and `pictures` get the messages and pictures of its input
    with their numbers."""
    test = listed.comparison
    head, base = test.head, test.base
    question = listed.result.question if listed.result else ""
    details = {
        "question": question,
        "baseQuestion": base.question if base and base.question != question else "",
        "facts": [*describe_change(test)[1:], *([test.reason] if test.reason else [])],
        "rescored": test.rescored,
        "gatesRemoved": list(test.gates_removed),
        "same": _same(base, head),
        "differsLater": _differs_later(base, head),
        "base": _side(base, messages, pictures),
        "head": _side(head, messages, pictures),
    }
    return {key: value for key, value in details.items() if value}


def _same(base: TestResult | None, head: TestResult | None) -> dict[str, bool] | None:
    """Which of the three fingerprints are the same on both sides; None if one side has none."""
    if not base or not head or not base.fingerprint or not head.fingerprint:
        return None
    names = ("question", "grading", "agent")
    return {
        name: getattr(base.fingerprint, name) == getattr(head.fingerprint, name) for name in names
    }


def _differs_later(base: TestResult | None, head: TestResult | None) -> bool:
    """Whether two answers differ only after the part that the page has."""
    old, new = (side.candidate_answer if side else "" for side in (base, head))
    return old != new and old[:TEXT] == new[:TEXT] and min(len(old), len(new)) >= TEXT


def _side(
    result: TestResult | None, messages: dict[str, int], pictures: dict[str, int]
) -> dict[str, Any] | None:
    if result is None:
        return None
    side: dict[str, Any] = _RESULT.dump_python(
        result,
        mode="json",
        by_alias=True,
        exclude_defaults=True,
        include=_SIDE,
        exclude=_NOT_SHOWN,
    )
    if result.input_messages:
        inputs = (
            json_in_html(_with_pictures(message, pictures)) for message in result.input_messages
        )
        side["input"] = [messages.setdefault(text, len(messages)) for text in inputs]
    for sample in side.get("samples", ()):
        shown = sample.get("outputMessages", ())
        answer = shown_text(sample.get("candidateAnswer", ""))
        if html := markdown_blocks(answer, 2 * TEXT):
            sample["html"] = html
        for call in (call for message in shown for call in message.get("tool_calls", ())):
            if "tool" in call:  # the other fields are a second wire form
                call.pop("type", None)
                call.pop("function", None)
        # The script shows the last message where an answer is the same text.
        if shown and shown[-1].get("content") == sample.get("candidateAnswer"):
            del sample["candidateAnswer"]
    return side


def _with_pictures(message: Mapping[str, Any], pictures: dict[str, int]) -> Mapping[str, Any]:
    """A message of an input, whose pictures are their numbers in `pictures`."""
    content = message.get("content")
    if not isinstance(content, list | tuple):
        return message
    return {**message, "content": [_numbered(part, pictures) for part in content]}


def _numbered(part: Any, pictures: dict[str, int]) -> Any:
    uri = str(part.get("value")) if isinstance(part, Mapping) else ""
    if not _PICTURE.fullmatch(uri):
        return part
    if uri in pictures or sum(map(len, (uri, *pictures))) <= MAX_PICTURES:
        return {"type": "image", "value": pictures.setdefault(uri, len(pictures))}
    return {"type": "image", "value": "not shown: the page has too many pictures"}
