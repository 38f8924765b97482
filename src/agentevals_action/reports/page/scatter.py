"""The plot of a change: one dot per test, its score on base against its score on head."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from agentevals_action.formatting import counted, score
from agentevals_action.model.comparison import ChangeKind
from agentevals_action.reports.view.groups import needs_review
from agentevals_action.reports.view.links import Links
from agentevals_action.reports.view.models import ListedTest

SIZE = 240  # units of the plot's side
Kind = Literal["worse", "better", "same"]


@dataclass(frozen=True)
class Dot:
    """Tests with the same scores (to hundredths) and the same `kind`: `x` and `y` in units from the
    upper left corner, `radius` grows with their number; `link` is the hash of the test in the page,
    of several the filter that shows them."""

    x: float
    y: float
    radius: float
    kind: Kind
    title: str
    link: str


def dots(tests: Iterable[ListedTest]) -> tuple[Dot, ...]:
    """The dots of the tests that were scored on both sides, the regressions last (on top)."""
    groups: defaultdict[tuple[str, str, Kind], list[ListedTest]] = defaultdict(list)
    for test in tests:
        if scores := _scores(test):
            groups[*scores, _kind(test)].append(test)
    ordered = sorted(groups.items(), key=lambda item: (_ORDER[item[0][2]], item[0][:2]))
    return tuple(_dot(*key, found) for key, found in ordered)


def counts(tests: Iterable[ListedTest]) -> Counter[Kind]:
    """How many of the tests that were scored on both sides are of each kind."""
    return Counter(_kind(test) for test in tests if _scores(test))


_ORDER = {"same": 0, "better": 1, "worse": 2}


def _scores(listed: ListedTest) -> tuple[str, str] | None:
    """The scores on base and head in words; None if one side was not scored."""
    base, head = listed.comparison.base, listed.comparison.head
    if not base or not head or base.score is None or head.score is None:
        return None
    return score(base.score), score(head.score)


def _kind(listed: ListedTest) -> Kind:
    test = listed.comparison
    if needs_review(test) or test.change is ChangeKind.REGRESSED:
        return "worse"
    return "better" if test.change is ChangeKind.IMPROVED else "same"


def _dot(base: str, head: str, kind: Kind, tests: list[ListedTest]) -> Dot:
    name, link = counted(len(tests), "test"), None
    if len(tests) == 1:
        name = tests[0].comparison.id
        link = Links(report_url="").report_test(tests[0].suite, name)
    return Dot(
        x=round(float(base) * SIZE, 1),
        y=round((1 - float(head)) * SIZE, 1),
        radius=round(min(5 + (len(tests) - 1) ** 0.5, 14), 1),
        kind=kind,
        title=f"{name}: {base} → {head}",
        link=link or f"#scores={base}%2C{head}",
    )
