"""What the terminal shows at the end."""

import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import IO

import pytest

from agentevals_action.model.comparison import SuiteComparison
from agentevals_action.reports.terminal import console
from agentevals_action.reports.view.build import build_view
from agentevals_action.reports.view.models import ReportView
from tests.support import reviews


def printed(what: Callable[[IO[str]], None]) -> list[str]:
    stream = StringIO()
    what(stream)
    return [line.strip() for line in stream.getvalue().splitlines() if line.strip()]


def viewed(*suites: SuiteComparison) -> ReportView:
    return build_view(reviews.review(*suites))


def print_cells(*suites: SuiteComparison) -> list[list[str]]:
    """The cells of the table of suites."""
    lines = printed(lambda stream: console.print_suites(viewed(*suites), stream))
    return [re.split(r"\s{2,}", line) for line in lines if "─" not in line]


def test_suite_table__shows_only_what_is_known() -> None:
    verdicts = ["suite", "pass", "borderline", "fail", "error", "pass rate", "score"]
    silent = reviews.compared((reviews.result("a", cost_usd=None),), None)
    assert print_cells(silent)[0] == [*verdicts, "time"]
    title, row = print_cells(reviews.compared((reviews.result("a"),), None))
    assert title == [*verdicts, "cost", "time"]
    assert row == [reviews.PATH, "1", "0", "0", "0", "100%", "1.00", "$0.0021", "1.2 s"]


def test_suite_table__has_figures_against_base_and_a_sum() -> None:
    head, base = reviews.result("a", cost_usd=0.3), reviews.result("a", cost_usd=0.2)
    suites = [reviews.compared((head,), (base,), path=path) for path in ("a.yaml", "b.yaml")]
    assert print_cells(*suites)[-1][-2:] == ["$0.4000 → $0.6000 (+50%)", "2.4 s"]


def print_changed(*suites: SuiteComparison) -> list[str]:
    view = viewed(*suites)
    return printed(lambda stream: console.print_tests(view, console.changed(view), stream))


def test_tests__turns_are_next_to_each_other_and_the_rest_is_counted() -> None:
    results = [
        reviews.result(f"{talk}{turn}", "fail", conversation_id=talk, misses=("m",))
        for turn in range(1, 4)
        for talk in ("a", "b")
    ]
    results += [reviews.result(f"t{number}", None, error="why") for number in range(60)]
    lines = print_changed(reviews.compared(tuple(results), ()))
    assert [line.split()[2] for line in lines[:6]] == ["a1", "a2", "a3", "b1", "b2", "b3"]
    assert "b2 (turn 2 of 3 of the conversation b)  new; missed: m" in lines[4]
    assert lines[6].endswith("t0  error on head; target failed: why")
    assert lines[-1] == "… and 16 more"


def test_tests__state_the_change_and_why_it_does_not_count() -> None:
    by = {
        line.partition(" evals")[2].split()[1]: line
        for line in print_changed(*reviews.believable().suites)
    }
    assert by["refund-over-limit"].startswith(
        f"pass → fail {reviews.PATH}:14 refund-over-limit  regressed; required gate failed: no-unapproved-refund; passed "
    )
    assert "; dropped, then passed 3 of 3 on head, 19 of 20 on base" in by["greets-by-name"]
    assert "  undecided; " in by["sums-up"]
    assert "regressed; score 0.20; accepted by ada" in by["upsells"]
    assert "in quarantine until 2026-03-01, owner grace" in by["german"]


def test_tests__state_why_they_were_not_compared() -> None:
    (line,) = print_changed(reviews.compared((reviews.result("a"),), (), same_service=("a",)))
    assert line.endswith("a  not comparable: both sides would ask the same service")


def test_screen__has_at_most_twenty_lines(tmp_path: Path) -> None:
    view = viewed(*reviews.many_regressions().suites)
    lines = printed(lambda stream: console.print_review(view, tmp_path / "report.html", stream))
    assert len(lines) <= 22
    assert lines[0].startswith("Failed: 40 tests regressed")
    assert any(re.fullmatch(r"… and \d+ more", line) for line in lines)
    assert lines[-2:] == [
        f"head {reviews.HEAD[:7]}, compared with {reviews.BASE[:7]}",
        f"report: {tmp_path / 'report.html'}",
    ]


def test_screen__an_error_that_tests_share_and_that_of_base_stand_once(tmp_path: Path) -> None:
    view = viewed(*reviews.runners().suites)
    lines = printed(lambda stream: console.print_review(view, tmp_path / "report.html", stream))
    assert "evals/test_agent.py (pytest)" in "\n".join(lines)
    (shared,) = (line for line in lines if "Traceback" in line and line.startswith("error"))
    assert shared.startswith("error       7 tests, evals/task.py  runner failed: `inspect` ended")
    assert any(line.startswith("base on base, `agentv` ended with exit code 2:") for line in lines)


def test_screen__names_the_working_tree(tmp_path: Path) -> None:
    suite = reviews.compared((reviews.result("a"),), (reviews.result("a"),))
    view = build_view(reviews.review(suite, uncommitted=("agent.py",)))
    lines = printed(lambda stream: console.print_review(view, tmp_path / "report.html", stream))
    assert lines[-2] == f"working tree of {reviews.HEAD[:7]}, compared with {reviews.BASE[:7]}"


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
    shown = "".join(print_changed(reviews.compared(tuple(results), ())))
    assert "##" not in re.sub("[^ -~]", "", shown)
    (line,) = printed(lambda stream: console.print_sentences([f"{command}x"], stream))
    assert not re.sub("[^ -~]", "", line).startswith(("::", "##"))
