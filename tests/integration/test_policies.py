"""The policies of a pull request hold for each executor: for a suite of ours, and for one that a
runner of others runs."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support import payloads, runner_gate
from tests.support.repositories import Files
from tests.support.runner_gate import agent, opened

TOMORROW = (datetime.now(UTC) + timedelta(days=1)).date().isoformat()
QUARANTINE = [{"tests": "greets", "owner": "ada", "reason": "slow", "expires": TOMORROW}]
RUDE = agent("Yo {}.")
AGENT = """\
import json, sys
print(json.load(open("agent.json"))["greeting"].format(sys.argv[1]), end="")
"""
#: Makes the files of base: so many `suites`, whose test `greets` may be a `gate`.
MakeFiles = Callable[..., Files]


def ours(*, suites: int = 1, gate: bool = False, key: str = "", **rules: Any) -> Files:
    """Suites of ours, whose agent is a program; it may need a `key`."""
    required = ", required: true" if gate else ""
    suite = f"""\
name: shop
tests:
  - {{id: greets, input: Ada, assert: [{{type: contains, value: Good day{required}}}]}}
  - {{id: names, input: Bob, assert: [{{type: contains, value: Bob}}]}}
"""
    more = f", '${{{{ {key} }}}}'" if key else ""
    command = f"command: [python3, -S, agent.py, '{{PROMPT}}'{more}]"
    return {
        "agent.py": AGENT,
        ".agentv/targets.yaml": f"targets:\n  - {{name: default, provider: cli, {command}, cwd: /}}\n",
        ".agentevals.yaml": json.dumps({"watch": ["agent.json"], **rules}),
        **{f"evals/{number}/EVAL.yaml": suite for number in range(suites)},
        **agent(),
    }


def runners(*, suites: int = 1, gate: bool = False, key: str = "", **rules: Any) -> Files:
    """Suites of a runner, which may need a `key`."""
    names = ["CALLS", *filter(None, [key])]
    entry = runner_gate.entry(env=names, **({"required": ["greets"]} if gate else {}))
    more = {f"checks/{number}.jsonl": runner_gate.TESTS for number in range(1, suites)}
    return runner_gate.files(runner_gate.rules(entry, **rules), more)


@pytest.fixture(params=[ours, runners], ids=["ours", "runner"])
def files(request: pytest.FixtureRequest) -> MakeFiles:
    made: MakeFiles = request.param
    return made


#: The options of base, the change, the inputs, the exit code, words of the comment.
POLICIES: dict[str, tuple[dict[str, Any], Files, dict[str, str], int, str]] = {
    "a regression": ({}, RUDE, {}, 1, "1 test regressed"),
    "another agent that is as good": ({}, agent("Good day, dear {}."), {}, 0, "**Passed:**"),
    "a failed gate": ({"gate": True}, RUDE, {"fail-on": "gates"}, 1, "required gate"),
    "quarantine": ({"gate": True, "quarantine": QUARANTINE}, RUDE, {}, 0, "1 test in quarantine"),
    "min-pass-rate": ({}, RUDE, {"min-pass-rate": "0.6", "fail-on": "gates"}, 1, "`min-pass-rate`"),
    "min-pass-all": (
        {},
        RUDE,
        {"min-pass-all": "0.6", "samples": "2", "fail-on": "gates"},
        1,
        "50% of the scored tests passed in all 2 samples, under the `min-pass-all` of 0.6",
    ),
    "fail-on never": ({}, RUDE, {"fail-on": "never"}, 0, "regress"),
}


@pytest.mark.parametrize("name", POLICIES)
def test_policy__decides(tmp_path: Path, files: MakeFiles, name: str) -> None:
    options, change, inputs, code, words = POLICIES[name]
    with opened(tmp_path, files(**options), change) as gate:
        done = gate.finish(inputs=inputs)
        assert done.code == code, done.log
        assert words in gate.comments()[0], gate.comments()[0]


@pytest.mark.slow
def test_label__accepts_a_regression(tmp_path: Path, files: MakeFiles) -> None:
    with opened(tmp_path, files(), RUDE) as gate:
        assert gate.finish().code == 1
        gate.announced.labels = {"agentevals:accept"}
        event = payloads.pull_request_event(gate.pull.head, gate.pull.main, action="labeled")
        event |= {"label": {"name": "agentevals:accept"}, "sender": payloads.user("ada")}
        done = gate.finish("pull_request", event)
        assert done.code == 0, done.log
        assert "1 regression accepted by `ada`" in done.summary


@pytest.mark.slow
def test_shards__merged_are_the_review(tmp_path: Path, files: MakeFiles) -> None:
    with opened(tmp_path, files(suites=2), RUDE) as gate:
        reports = []
        for shard in ("1/2", "2/2"):
            done = gate.finish(inputs={"shard": shard})
            assert done.code == 0, done.log
            reports.append(gate.report)
        job = gate.job(inputs={"mode": "merge"})
        for number, report in enumerate(reports, 1):
            shutil.copytree(report, job.workspace / f"agentevals-report/shards/{number}-1")
        merged = job.finish()
        assert merged.code == 1, merged.log
        assert [suite["changes"]["regressed"] for suite in gate.summary["suites"]] == [1, 1]


def test_stored_results__spare_base(tmp_path: Path, files: MakeFiles) -> None:
    with opened(tmp_path, files(), RUDE) as gate:
        assert gate.pushed().code == 0
        done = gate.finish()
        assert done.code == 1, done.log
        assert gate.changes() == {"greets": "regressed"}
        assert gate.summary["baseline"]["source"] == "branch"
        assert "Good day, Ada." in gate.comments()[0]


@pytest.mark.slow
def test_baseline_file__spares_base(tmp_path: Path, files: MakeFiles) -> None:
    with opened(tmp_path, files(), RUDE) as gate:
        assert gate.pushed().code == 0
        rows = (gate.report / "results.jsonl").read_text()
    with opened(tmp_path / "file", {**files(), "base.jsonl": rows}, RUDE) as gate:
        done = gate.finish(inputs={"baseline": "file", "baseline-file": "base.jsonl"})
        assert done.code == 1, done.log
        assert gate.changes() == {"greets": "regressed"}
        assert gate.summary["baseline"]["source"] == "file"


def test_fork__without_a_key_is_inconclusive(tmp_path: Path, files: MakeFiles) -> None:
    with opened(tmp_path, files(key="NEW_KEY"), RUDE) as gate:
        event = payloads.pull_request_event(gate.pull.head, gate.pull.main, fork=True)
        inputs = {"env": "CALLS\nNEW_KEY"}
        done = gate.finish("pull_request", event, inputs=inputs, env={"NEW_KEY": ""})
        assert done.code == 3, done.log
        assert gate.conclusions()[-1][1] == "action_required"
        assert "NEW_KEY" in done.log
