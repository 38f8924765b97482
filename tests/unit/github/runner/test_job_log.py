"""The log of a job."""

import pytest

from agentevals_action.github.runner import job_log
from agentevals_action.reports.annotations import annotations
from agentevals_action.reports.publication import Published
from agentevals_action.reports.view.build import build_view
from agentevals_action.system.redaction import Redactor, redacting
from tests.support import reviews

KEY = "sk-0123456789"
NASTY = f"::error::no ##[endgroup] \x1b[31mred\x1b[0m \x1b]0;title\x07 {KEY}"


def test_folded__in_a_job_it_is_one_group_and_nobody_elses_command(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with redacting(Redactor([KEY])), job_log.folded("setup", in_actions=True) as write:
        write("npm install")
        write(NASTY)
        write("sk-01\x1b[0m23456789")
        write("x" * 5000)
    log = capfd.readouterr()
    lines = log.out.splitlines()
    assert log.err == ""
    assert (lines[0], lines[1], lines[-1]) == ("::group::setup", "npm install", "::endgroup::")
    assert [
        line
        for line in lines[1:-1]
        if line.lstrip().startswith("::") or "##[" in line or "\x1b" in line or "sk-01" in line
    ] == []
    assert "red" in lines[2]
    assert lines[3] == "***"
    assert len(lines[4]) == 1000


def test_folded__elsewhere_it_is_plain_lines_on_standard_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with job_log.folded("setup", in_actions=False) as write:
        write("npm install")
    assert capfd.readouterr() == ("", "setup:\nnpm install\n")


def test_folded__ends_its_group_also_when_it_is_stopped(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), job_log.folded("setup", in_actions=True):
        raise KeyboardInterrupt
    assert capfd.readouterr().out.endswith("::endgroup::\n")


def test_review__conversations_notices_and_cost(capfd: pytest.CaptureFixture[str]) -> None:
    job_log.write_review(
        build_view(reviews.conversations()), Published(), ("grant `checks: write`",)
    )
    lines = capfd.readouterr().out.splitlines()
    tests = [line for line in lines if "conversation" in line and not line.startswith("::")]
    order = [line.partition(" (turn")[0].split()[-1] for line in tests]
    assert order == [
        "booking-1",
        "booking-2",
        "booking-3",
        "complaint-1",
        "complaint-2",
        "complaint-3",
        "refund-1",
        "refund-2",
    ]
    assert (
        "pass → fail booking-2 (turn 2 of 3 of the conversation booking)  regressed; missed: names the price"
        in lines
    )
    assert any("budget spent: `max-cost-usd` (0.02) is reached" in line for line in lines)
    warnings = [line for line in lines if line.startswith("::warning::")]
    assert warnings[0] == "::warning::grant `checks: write`"
    assert warnings[1].startswith("::warning::`max-cost-usd` (0.02) was reached")
    assert sum("(3 times)" in line for line in warnings) == 1
    assert [line for line in lines if "came from the cache" in line] == [
        "Known cost: $0.0399 (23 of 24 replies); 2 of 24 replies came from the cache."
    ]


def test_review__a_hostile_conversation_gives_no_command(capfd: pytest.CaptureFixture[str]) -> None:
    head = tuple(reviews.result(name, conversation_id=f"x\n{NASTY}") for name in ("a", "b"))
    job_log.write_review(
        build_view(reviews.review(reviews.compared(head, head), notices=(f"\n{NASTY}",) * 2)),
        Published(),
        [f"n{number}" for number in range(20)],
    )
    lines = capfd.readouterr().out.splitlines()
    commands = [
        line.split("::")[1].split(" ")[0] for line in lines if line.lstrip().startswith("::")
    ]
    assert commands == ["group", "endgroup", *["warning"] * 10]
    assert not any("##[" in line for line in lines)
    assert sum(line.startswith("notice: ") for line in lines) == 11


def test_review__hostile_texts_of_runners_give_no_command(
    capfd: pytest.CaptureFixture[str],
) -> None:
    view = build_view(reviews.hostile())
    found, _ = annotations(view, 50)
    job_log.write_review(view, Published(annotations=found), ())
    lines = capfd.readouterr().out.splitlines()
    commands = {line.split("::")[1].split(" ")[0] for line in lines if line.startswith("::")}
    assert commands == {"group", "endgroup", "error", "warning"}
    assert not any(line.lstrip().startswith(("::error::x", "##[")) for line in lines)


def test_review__a_runner_that_failed_on_base_has_its_words(
    capfd: pytest.CaptureFixture[str],
) -> None:
    job_log.write_review(build_view(reviews.runners()), Published(), ())
    lines = capfd.readouterr().out.splitlines()
    assert "::group::evals/test_agent.py (pytest): 1 passed, 1 failed, 1 errors" in lines
    (words,) = (line for line in lines if line.startswith("on base, `agentv` ended"))
    assert words.endswith("ImportError: No module named 'lib'")
