"""`report.html`: the review as one page that opens without a server and fetches nothing."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from agentevals_action.escaping import plain, visible
from agentevals_action.formatting import UNKNOWN, cost, counted, moved, plural, score, time, tokens
from agentevals_action.model.comparison import ChangeKind
from agentevals_action.model.result import SampleResult, TestResult, TraceSummary
from agentevals_action.reports.html import scatter
from agentevals_action.reports.html.layout import page
from agentevals_action.reports.html.markdown_html import markdown, markdown_line
from agentevals_action.reports.html.page_data import page_data, reason_of
from agentevals_action.reports.view import confirmation, verdict, waivers
from agentevals_action.reports.view.models import ListedTest, ReportView
from agentevals_action.reports.view.page import build_page
from agentevals_action.reports.view.tests import ListLimits, verdicts

#: The name of the page's file.
PAGE = "report.html"
#: The tests have their own list; the page's other lists are nearly complete.
_LIMITS = ListLimits(
    "full", detailed=0, answer=0, rows=0, folded=1_000, quiet=0, items=1_000, text=500
)
_ROWS = 1_000  # tests that a reader without JavaScript sees
_TARGETS = 200
_TEXT = 200  # characters of a text in a table


def report_page(view: ReportView) -> str:
    """The page of a review."""
    data = page_data(view)
    dots = scatter.dots(view.tests)
    context = {
        "page": build_page(replace(view, links=replace(view.links, report_url="")), _LIMITS),
        "dots": dots,
        "plot_label": _plot_label(view.tests),
        "size": scatter.SIZE,
        "changes": _changes(view.tests),
        "rows": [_row(one) for one in data.listed[:_ROWS]],
        "rows_left": _left(len(view.tests) - _ROWS),
        "left": _left(data.left),
        "targets": list(_targets(view))[:_TARGETS],
        "markdown": markdown,
        "markdown_line": markdown_line,
    }
    return page("report", plain(verdict.headline(view), 120), data.json, context)


def _left(number: int) -> str:
    return f"{counted(number, 'more test')} in results.jsonl" if number > 0 else ""


def _plot_label(tests: Iterable[ListedTest]) -> str:
    """The plot in a sentence, for readers who do not see it."""
    words: Mapping[scatter.Kind, str] = {
        "worse": "to review",
        "better": "improved",
        "same": "neither",
    }
    counts = scatter.counts(tests)
    parts = [f"{counted(counts[kind], 'test')} {word}" for kind, word in words.items()]
    return f"Score on base against score on head: {', '.join(parts)}"


def _changes(tests: Sequence[ListedTest]) -> list[dict[str, str | int]]:
    """How many tests need a review, if they are others than those that regressed, then how many
    have each change; `key` is the filter in the list of tests."""
    counts = Counter(one.comparison.change for one in tests)
    review = sum(waivers.needs_review(one.comparison) for one in tests)
    if review == counts[ChangeKind.REGRESSED]:
        review = 0
    found = [(review, plural(review, "needs review", "need review"), "review")]
    found += [
        (counts[change], confirmation.change_word(change), change.value) for change in ChangeKind
    ]
    return [{"number": number, "word": word, "key": key} for number, word, key in found if number]


def _row(one: ListedTest) -> dict[str, str]:
    """A test for readers without JavaScript."""
    test = one.comparison
    base, head = test.base, test.head
    scores = [side.score for side in (base, head) if side]
    return {
        "id": plain(test.id, _TEXT),
        "suite": plain(one.suite, _TEXT),
        "change": confirmation.change_word(test.change),
        "verdict": verdicts(test),
        "score": moved(score, scores[0], scores[-1]),
        "miss": plain(reason_of(test), _TEXT),
    }


def _targets(view: ReportView) -> Iterator[dict[str, str | int]]:
    """Each target in each suite: means per sample, `base → head`."""
    groups: defaultdict[tuple[str, str], tuple[list[TestResult], list[TestResult]]]
    groups = defaultdict(lambda: ([], []))
    for one in view.tests:
        for index, side in enumerate((one.comparison.base, one.comparison.head)):
            if side:
                groups[side.target, one.suite][index].append(side)
    for (target, suite), sides in sorted(groups.items()):
        base, head = (_traces(side) for side in sides)

        def mean(traces: Sequence[TraceSummary], name: str) -> float | None:
            known = [value for one in traces if (value := getattr(one, name)) is not None]
            return sum(known) / len(known) if known else None

        yield {
            "target": visible(target) or UNKNOWN,
            "suite": visible(suite),
            "samples": len(head) or len(base),
            "cost": moved(cost, mean(base, "cost_usd"), mean(head, "cost_usd")),
            "tokens": moved(tokens, mean(base, "total_tokens"), mean(head, "total_tokens")),
            "time": moved(time, mean(base, "duration_ms"), mean(head, "duration_ms")),
        }


def _traces(results: Iterable[TestResult]) -> list[TraceSummary]:
    samples: Iterator[SampleResult] = (sample for one in results for sample in one.samples)
    return [sample.trace_summary for sample in samples if sample.trace_summary]
