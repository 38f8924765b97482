"""`report.html`: the review as one page that opens without a server and fetches nothing."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agentevals_action import templating
from agentevals_action.escaping import plain, visible
from agentevals_action.formatting import UNKNOWN, cost, counted, moved, score, time, tokens
from agentevals_action.model.comparison import ChangeKind
from agentevals_action.model.result import SampleResult, TestResult, TraceSummary
from agentevals_action.model.skill import name_suite
from agentevals_action.reports.markdown.texts import Limits, list_facts
from agentevals_action.reports.page.layout import markdown_line, page
from agentevals_action.reports.page.page_data import TEXT_IN_ROW, explain_state, page_data
from agentevals_action.reports.view.confirmation import change_word
from agentevals_action.reports.view.groups import needs_review
from agentevals_action.reports.view.models import Links, ReportedTest, ReportView
from agentevals_action.reports.view.sentences import headline, verdicts
from agentevals_action.reports.view.suite_table import (
    DROP_NOTE,
    NOISE_NOTE,
    describe_drop,
    difference_lines,
)

#: The name of the page's file.
PAGE = "report.html"
#: The tests have their own list; the page's other lists are nearly complete.
_LIMITS = Limits(detailed=0, answer=0, suites=1_000, items=1_000, errors=1_000, text=500)
_ROWS = 1_000  # tests that a reader without JavaScript sees
_TARGETS = 200
_SIZE = 240  # units of the plot's side
Kind = Literal["worse", "better", "same"]


def report_page(view: ReportView) -> str:
    """The page of a review."""
    data = page_data(view)
    view = replace(view, links=replace(view.links, report_url=""))  # links within the page
    facts = list_facts(view, _LIMITS)
    context = {
        **facts,
        "parts": templating.report_macros("parts.md.j2", facts),
        "has_base": view.review.has_base,
        "differences": [
            (suite.path, line) for suite in view.review.suites for line in difference_lines(suite)
        ],
        "noise_note": NOISE_NOTE,
        "drops": [
            (suite.path, describe_drop(suite.drop)) for suite in view.review.suites if suite.drop
        ],
        "drop_note": DROP_NOTE,
        "dots": _dots(view.tests),
        "plot_label": _plot_label(view.tests),
        "size": _SIZE,
        "rows": [_row(test) for test in data.listed[:_ROWS]],
        "rows_left": _left(len(view.tests) - _ROWS),
        "left": _left(data.left),
        "targets": list(_targets(view))[:_TARGETS],
        "markdown_line": markdown_line,
    }
    return page("report", plain(headline(view), 120), data.json, context)


def _left(number: int) -> str:
    return f"{counted(number, 'more test')} in results.jsonl" if number > 0 else ""


def _plot_label(tests: Iterable[ReportedTest]) -> str:
    """The plot in a sentence, for readers who do not see it."""
    words: Mapping[Kind, str] = {
        "worse": "to review",
        "better": "improved",
        "same": "neither",
    }
    counts = _counts(tests)
    parts = [f"{counted(counts[kind], 'test')} {word}" for kind, word in words.items()]
    return f"Score on base against score on head: {', '.join(parts)}"


def _row(listed: ReportedTest) -> dict[str, str]:
    """A test for readers without JavaScript."""
    test = listed.comparison
    base, head = test.base, test.head
    scores = [side.score for side in (base, head) if side]
    return {
        "id": plain(test.id, TEXT_IN_ROW),
        "suite": plain(name_suite(listed.suite), TEXT_IN_ROW),
        "change": change_word(test.change),
        "verdict": verdicts(test),
        "score": moved(score, scores[0], scores[-1]),
        "miss": explain_state(test),
    }


def _targets(view: ReportView) -> Iterator[dict[str, str | int]]:
    """Each target in each suite: means per sample, `base → head`."""
    groups: defaultdict[tuple[str, str], tuple[list[TestResult], list[TestResult]]]
    groups = defaultdict(lambda: ([], []))
    for test in view.tests:
        for index, side in enumerate((test.comparison.base, test.comparison.head)):
            if side:
                groups[side.target, test.suite][index].append(side)
    for (target, suite), sides in sorted(groups.items()):
        base, head = (_traces(side) for side in sides)
        if not target and not base and not head:
            continue
        base = base or head

        def mean(traces: Sequence[TraceSummary], name: str) -> float | None:
            values = [value for trace in traces if (value := getattr(trace, name)) is not None]
            return sum(values) / len(values) if values else None

        yield {
            "target": visible(target) or UNKNOWN,
            "suite": visible(name_suite(suite)),
            "samples": len(head) or len(base),
            "cost": moved(cost, mean(base, "cost_usd"), mean(head, "cost_usd")),
            "tokens": moved(tokens, mean(base, "total_tokens"), mean(head, "total_tokens")),
            "time": moved(time, mean(base, "duration_ms"), mean(head, "duration_ms")),
        }


def _traces(results: Iterable[TestResult]) -> list[TraceSummary]:
    samples: Iterator[SampleResult] = (sample for result in results for sample in result.samples)
    return [sample.trace_summary for sample in samples if sample.trace_summary]


@dataclass(frozen=True)
class _Dot:
    """Tests with the same scores (to hundredths) and the same `kind`: `x` and `y` in units from the
    upper left corner, `radius` grows with their number; `link` is the hash of the test in the page,
    or of the filter that shows several tests."""

    x: float
    y: float
    radius: float
    kind: Kind
    title: str
    link: str


def _dots(tests: Iterable[ReportedTest]) -> tuple[_Dot, ...]:
    """The dots of the tests that were scored on both sides, the regressions last (on top)."""
    groups: defaultdict[tuple[str, str, Kind], list[ReportedTest]] = defaultdict(list)
    for test in tests:
        if scores := _scores(test):
            groups[*scores, _kind(test)].append(test)
    ordered = sorted(groups.items(), key=lambda group: (_ORDER[group[0][2]], group[0][:2]))
    return tuple(_dot(*key, same) for key, same in ordered)


def _counts(tests: Iterable[ReportedTest]) -> Counter[Kind]:
    """How many of the tests that were scored on both sides are of each kind."""
    return Counter(_kind(test) for test in tests if _scores(test))


_ORDER = {"same": 0, "better": 1, "worse": 2}


def _scores(listed: ReportedTest) -> tuple[str, str] | None:
    """The scores on base and head in words; None if one side was not scored."""
    base, head = listed.comparison.base, listed.comparison.head
    if not base or not head or base.score is None or head.score is None:
        return None
    return score(base.score), score(head.score)


def _kind(listed: ReportedTest) -> Kind:
    test = listed.comparison
    if needs_review(test) or test.change is ChangeKind.REGRESSED:
        return "worse"
    return "better" if test.change is ChangeKind.IMPROVED else "same"


def _dot(base: str, head: str, kind: Kind, tests: list[ReportedTest]) -> _Dot:
    name, link = counted(len(tests), "test"), None
    if len(tests) == 1:
        name = tests[0].comparison.id
        link = Links(report_url="").report_test(tests[0].suite, name)
    return _Dot(
        x=round(float(base) * _SIZE, 1),
        y=round((1 - float(head)) * _SIZE, 1),
        radius=round(min(5 + (len(tests) - 1) ** 0.5, 14), 1),
        kind=kind,
        title=f"{name}: {base} → {head}",
        link=link or f"#scores={base}%2C{head}",
    )
