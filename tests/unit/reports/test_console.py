"""What the terminal shows at the end."""

import re
from collections.abc import Callable
from io import StringIO
from typing import IO

import pytest

from agentevals_action.model.comparison import SuiteComparison
from agentevals_action.reports import console
from agentevals_action.reports.view.build import build_view
from agentevals_action.reports.view.models import ReportView
from tests.support import reviews


def printed(what: Callable[[IO[str]], None]) -> list[str]:
    stream = StringIO()
    what(stream)
    return [line.strip() for line in stream.getvalue().splitlines() if line.strip()]


def viewed(*suites: SuiteComparison) -> ReportView:
    return build_view(reviews.review(*suites))


def suites_of(*suites: SuiteComparison) -> list[list[str]]:
    """The cells of the table of suites."""
    lines = printed(lambda stream: console.print_suites(viewed(*suites), stream))
    return [re.split(r"\s{2,}", line) for line in lines if "─" not in line]


def test_suite_table__shows_only_what_is_known() -> None:
    verdicts = ["suite", "pass", "borderline", "fail", "error", "pass rate", "score"]
    silent = reviews.compared((reviews.result("a", cost_usd=None),), None)
    assert suites_of(silent)[0] == [*verdicts, "time"]
    title, row = suites_of(reviews.compared((reviews.result("a"),), None))
    assert title == [*verdicts, "cost", "time"]
    assert row == [reviews.PATH, "1", "0", "0", "0", "100%", "1.00", "$0.0021", "1.2 s"]


def test_suite_table__has_figures_against_base_and_a_sum() -> None:
    head, base = reviews.result("a", cost_usd=0.3), reviews.result("a", cost_usd=0.2)
    suites = [reviews.compared((head,), (base,), path=path) for path in ("a.yaml", "b.yaml")]
    assert suites_of(*suites)[-1][-2:] == ["$0.4000 → $0.6000 (+50%)", "2.4 s"]


def test_not_passed__turns_are_next_to_each_other_and_the_rest_is_counted() -> None:
    results = [
        reviews.result(f"{talk}{turn}", "fail", conversation_id=talk, misses=("m",))
        for turn in range(1, 4)
        for talk in ("a", "b")
    ]
    results += [reviews.result(f"t{number}", None, error="why") for number in range(60)]
    lines = printed(
        lambda stream: console.print_not_passed(
            viewed(reviews.compared(tuple(results), ())), stream
        )
    )
    assert [line.split()[2] for line in lines[:6]] == ["a1", "a2", "a3", "b1", "b2", "b3"]
    assert "b2 (turn 2 of 3 of the conversation b)  m" in lines[4]
    assert lines[6].endswith("t0  target failed: why")
    assert lines[-1] == "… and 16 more"


def test_comparison_lines__turns_are_next_to_each_other() -> None:
    lines = printed(
        lambda stream: console.print_changes(viewed(reviews.conversations().suites[0]), stream)
    )
    names = [line.partition("EVAL.yaml ")[2].split()[0].rstrip(":") for line in lines]
    assert names == [
        *(
            "booking-2",
            "booking-3",
            "complaint-1",
            "complaint-2",
            "complaint-3",
            "opening-hours",
            "refund-1",
            "refund-2",
        ),
        *("farewell-1", "farewell-2"),
    ]
    assert "booking-2 (turn 2 of 3 of the conversation booking): pass → fail" in lines[0]


def test_comparison_lines__state_what_does_not_count_and_why() -> None:
    lines = printed(
        lambda stream: console.print_changes(viewed(*reviews.believable().suites), stream)
    )
    by = {line.partition("EVAL.yaml ")[2].split(":")[0]: line for line in lines}
    assert by["greets-by-name"].startswith("flaky ")
    assert by["greets-by-name"].endswith("dropped, then passed 3 of 3 on head, 19 of 20 on base")
    assert by["sums-up"].startswith("undecided ")
    assert by["upsells"].endswith("pass → fail  accepted by ada")
    assert "in quarantine until 2026-03-01, owner grace" in by["german"]


def test_remarks__one_line_each_and_no_empty_one() -> None:
    assert printed(lambda stream: console.print_sentences(["", "a\nb", "::error::x"], stream)) == [
        "a b",
        "| ::error::x",
    ]


@pytest.mark.parametrize(
    "command",
    [
        "##[error]",
        "#\u200b#[",
        "#\u034f#\u034f[",
        "::error::",
        "\u034f::error::",
        ":\u034f:error::",
    ],
)
def test_lines__no_text_of_an_agent_is_a_command_of_the_runner(command: str) -> None:
    results = [reviews.result("t", "fail", misses=(f"a {command}x",))]
    assert "##" not in "".join(
        re.sub("[^ -~]", "", line)
        for line in printed(
            lambda stream: console.print_not_passed(
                viewed(reviews.compared(tuple(results), ())), stream
            )
        )
    )
    (line,) = printed(lambda stream: console.print_sentences([f"{command}x"], stream))
    assert not re.sub("[^ -~]", "", line).startswith(("::", "##"))
