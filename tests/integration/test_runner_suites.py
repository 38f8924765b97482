"""A pull request is gated by suites that a runner of others runs, end to end."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.repositories import Files
from tests.support.runner_gate import (
    SUITE,
    TESTS,
    RunnerGate,
    agent,
    entry,
    files,
    opened,
    rules,
)

RUDE = agent("Yo {}.")


def test_runner__a_change_of_something_else_starts_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, files(), {"docs/a.md": "more"}) as gate:
        done = gate.finish()
        assert (done.code, gate.calls()) == (0, []), done.log
        assert "the change affects no suite" in gate.comments()[0]


def test_runner__a_broken_prompt_is_red_with_its_tests_lines_and_answers(tmp_path: Path) -> None:
    """All suspects of a suite share a start for each sample and side, in one pull request with a
    test that stays good."""
    asked = [f"Ada{number}" for number in range(8)]
    tests = [
        json.dumps({"id": f"greets {name}", "ask": name, "want": "Good day"}) for name in asked
    ]
    suite = TESTS.splitlines()[1] + "\n" + "\n".join(tests) + "\n"
    with opened(tmp_path, files({SUITE: suite}), RUDE) as gate:
        done = gate.finish()
        assert done.code == 1, done.log
        assert gate.changes() == {f"greets {name}": "regressed" for name in asked}
        assert gate.annotations() == [("warning", SUITE, line) for line in range(2, 10)]
        assert "Good day, Ada0." in gate.comments()[0]
        assert "Yo Ada0." in gate.comments()[0]
        for side in ("head", "base"):
            first, *again = gate.calls(side)
            assert first["chosen"] is None
            assert all(call["chosen"] == [f"greets {name}" for name in asked] for call in again)
            samples = {len(row["samples"]) for row in gate.rows(side).values()}
            assert samples == {1, 1 + len(again)}


def test_runner__a_flaky_test_is_green_and_named(tmp_path: Path) -> None:
    with opened(tmp_path, files(), agent(fails={"greets": [1]})) as gate:
        done = gate.finish()
        assert done.code == 0, done.log
        assert gate.changes() == {"greets": "flaky"}
        assert gate.summary["groups"]["flaky"] == 1


def test_runner__a_required_gate_that_fails_is_red_at_its_line(tmp_path: Path) -> None:
    gated = rules(entry(required=["names"]))
    with opened(tmp_path, files(gated), agent("Good day.")) as gate:
        done = gate.finish()
        assert done.code == 1, done.log
        assert gate.summary["groups"]["failedGates"] == 1
        assert gate.annotations() == [("failure", SUITE, 2)]
        assert gate.rows()["names"]["gatesFailed"] == ["ours"]


#: Changes that take a gate away without a failure.
LOST_GATES = {
    "skipped": agent(rows={"names": {"verdict": None, "skipped": "later"}}),
    "not required": rules(entry()),
    "another entry's words": rules(entry(required=["other"])),
    "deleted": {SUITE: TESTS.splitlines()[0] + "\n"},
}


@pytest.mark.parametrize("change", LOST_GATES)
def test_runner__a_gate_that_the_change_takes_away_is_named(tmp_path: Path, change: str) -> None:
    gated = rules(entry(required=["names"]))
    with opened(tmp_path, files(gated), LOST_GATES[change]) as gate:
        done = gate.finish()
        assert done.code == 0, done.log
        first = gate.comments()[0].split("|")[0]
        assert "gate" in first, first


#: What a runner does wrong with one suite, and words of its error.
BROKEN = {
    "crash": ("sys.exit('no model')", "ended with exit code 1: no model"),
    "code": ("import atexit; atexit.register(os._exit, 7)", "ended with exit code 7"),
    "signal": ("os.kill(os.getpid(), 9)", "was ended by signal 9"),
    "hang": ("import time; time.sleep(60)", "did not end within 1 s"),
    "half": ('file.write_text(\'{"evalId": "gree\'); os._exit(0)', "line 1 of its results.jsonl"),
    "nothing": ("os._exit(0)", "it wrote no results.jsonl (No such file or directory)"),
    "empty": ("file.touch(); os._exit(0)", "it ran no test"),
    "large": (
        "file.touch(); os.truncate(file, 50 << 20); os._exit(0)",
        "its results.jsonl is larger than 32 MiB",
    ),
    "fifo": ("os.mkfifo(file); os._exit(0)", "it is not a regular file"),
    "link": ("file.symlink_to('/proc/self/environ'); os._exit(0)", "by a link"),
    "folder": ("file.mkdir(); os._exit(0)", "it wrote no results.jsonl"),
    "binary": ("file.write_bytes(b'\\xff\\0'); os._exit(0)", "line 1 of its results.jsonl"),
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunnerGate]:
    """A change after which the runner fails in several ways, each with a suite of its own."""
    suites: Files = {f"checks/{name}.jsonl": TESTS for name in BROKEN}
    do = {f"checks/{name}.jsonl": what for name, (what, _) in BROKEN.items()}
    base = files(suites, rules(entry(timeout_seconds=1)))
    with opened(tmp_path_factory.mktemp("broken"), base, agent(do=do)) as gate:
        done = gate.finish()
        assert (done.code, done.outputs["outcome"]) == (3, "inconclusive"), done.log
        yield gate


@pytest.mark.parametrize("name", BROKEN)
def test_runner__that_fails_is_inconclusive_with_its_words(broken: RunnerGate, name: str) -> None:
    (suite,) = (each for each in broken.summary["suites"] if each["path"] == f"checks/{name}.jsonl")
    changes = {test["id"]: test["change"] for test in suite["tests"]}
    assert changes == {"greets": "errorOnHead", "names": "errorOnHead"}
    rows = (broken.report / "results.jsonl").read_text().splitlines()
    (error,) = {
        row["error"]["message"] for row in map(json.loads, rows) if row["evalPath"] == suite["path"]
    }
    assert error.startswith("`ours`")
    assert BROKEN[name][1] in error
