"""Tests in quarantine, through the command line: run and actual, not blocking, until their day is
over."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support import command

MOCK = """\
targets:
  - name: default
    provider: mock
    responses:
      - {pattern: broken, response: nothing of use}
      - {pattern: ".*", response: hello there}
"""


def suite(*tests: str) -> str:
    rows = [
        f"  - {{id: {name}, input: {name}, assert: [{{type: contains, value: hello, required: true}}]}}\n"
        for name in tests
    ]
    return "name: greeter\ntests:\n" + "".join(rows)


def day(days: int) -> str:
    """A day so many days from now, in UTC."""
    return (datetime.now(UTC) + timedelta(days=days)).date().isoformat()


def quarantine(tests: str, expires: str) -> str:
    return f'quarantine:\n  - {{tests: "{tests}", owner: "@ada", reason: the provider flakes, expires: {expires}}}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / ".agentv").mkdir(parents=True)
    (folder / ".agentv/targets.yaml").write_text(MOCK)
    (folder / "EVAL.yaml").write_text(suite("one", "broken"))
    return folder


def test_run__a_failed_gate_in_quarantine_is_reported_and_does_not_block(folder: Path) -> None:
    assert command.run(folder, "run").code == 1
    (folder / ".agentevals.yaml").write_text(quarantine("brok*", day(2)))
    done = command.run(folder, "run", "--min-pass-rate", "1")
    assert done.code == 0, done.out + done.err
    actual = f"1 test in quarantine does not count (1 fail): owner @ada, until {day(2)}, the provider flakes"
    assert actual in done.out
    assert "required gate failed" in done.out
    summary = json.loads((folder / "agentevals-report/summary.json").read_text())
    assert summary["waived"] == [actual]
    assert summary["suites"][0]["head"]["fail"] == 1


def test_run__an_entry_that_has_expired_is_named_and_nothing_runs(folder: Path) -> None:
    (folder / ".agentevals.yaml").write_text(quarantine("broken", day(-1)))
    done = command.run(folder, "run")
    assert done.code == 2
    assert (
        f".agentevals.yaml:2:5: the quarantine of 'broken' expired on {day(-1)} (owner @ada: the provider flakes)"
        in done.err
    )
    assert not (folder / "agentevals-report/results.jsonl").exists()
