"""Conditions on the cost and the time of a suite, for each executor: with stored results of base,
with those alone, in shards, and with replies from the cache."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import payloads, runner_gate
from tests.support.job import Finished
from tests.support.repositories import Files
from tests.support.runner_gate import RunnerGate, opened

NAMES = [f"t{number}" for number in range(6)]
AGENT = """\
import json, os
agent = json.load(open("agent.json"))
cost = agent["cost"] * float(os.environ["TIMES"])
print(json.dumps({"output": "Good day", "cost_usd": cost, "duration_ms": 100}))
"""
#: What the runner's stand-in reports beside the verdicts.
REPORTS = """\
cost = agent["cost"] * float(os.environ["TIMES"])
row = {"durationMs": 100, "traceSummary": {"costUsd": cost}}
agent["rows"] = dict.fromkeys(["t0", "t1", "t2", "t3", "t4", "t5"], row)
"""
LIMITS = {"max-cost-increase": "20%", "max-latency-increase": "30%", "env": "CALLS\nTIMES"}
FAILED = "costs 30% more than on base (30% in fresh samples), over the `max-cost-increase` of 20%"


def agent(cost: float) -> Files:
    return runner_gate.agent(cost=cost, do={runner_gate.SUITE: REPORTS})


def ours() -> Files:
    """A suite of ours, whose agent states what it cost."""
    tests = [
        {"id": name, "input": name, "assert": [{"type": "contains", "value": "Good day"}]}
        for name in NAMES
    ]
    command = "[python3, -S, agent.py]"
    return {
        "agent.py": AGENT,
        ".agentv/targets.yaml": f"[{{name: default, provider: cli, command: {command}, cwd: /}}]",
        ".agentevals.yaml": json.dumps({"watch": ["agent.json"]}),
        "evals/EVAL.yaml": json.dumps({"name": "shop", "tests": tests}),
        **agent(0.01),
    }


def runners() -> Files:
    """A suite of a runner, which reports what its agent cost."""
    lines = [{"id": name, "ask": name, "want": "Good day"} for name in NAMES]
    suite = "".join(json.dumps(line) + "\n" for line in lines)
    rules = runner_gate.rules(runner_gate.entry(env=["CALLS", "TIMES"]))
    return runner_gate.files(rules, {runner_gate.SUITE: suite}, agent(0.01))


@pytest.fixture(params=[ours, runners], ids=["ours", "runner"])
def files(request: pytest.FixtureRequest) -> Files:
    made: Callable[[], Files] = request.param
    return made()


def finish(gate: RunnerGate, *arguments: Any, times: str = "1", **inputs: str) -> Finished:
    """A run whose agent costs so many times as much as its file states."""
    given = {**LIMITS, **{name.replace("_", "-"): value for name, value in inputs.items()}}
    return gate.finish(*arguments, inputs=given, env={"TIMES": times})


def push(gate: RunnerGate) -> None:
    event = payloads.push_event("0" * 40, gate.pull.main)
    assert finish(gate, "push", event, gate.pull.main).code == 0


def increases(gate: RunnerGate) -> dict[str, Any]:
    (suite,) = gate.summary["suites"]
    return {each["figure"]: each for each in suite["increases"]}


@pytest.mark.slow
def test_stored_results__are_confirmed_in_the_tree_of_base(tmp_path: Path, files: Files) -> None:
    with opened(tmp_path, files, agent(0.013)) as gate:
        push(gate)
        done = finish(gate)
        assert done.code == 1, done.log
        assert FAILED in gate.comments()[0]
        assert gate.conclusions()[-1][1] == "failure"
        assert gate.summary["baseline"]["source"] == "branch"
        # The samples of this confirmation are those of no test.
        assert [len(row["samples"]) for row in gate.rows().values()] == [1] * 6
        assert [len(row["suiteSamples"]) for row in gate.rows("base").values()] == [3] * 6
        assert gate.summary["spent"]["costUsd"] == pytest.approx(6 * (4 * 0.013 + 3 * 0.01))
        # The label accepts regressions.
        gate.announced.labels = {"agentevals:accept"}
        event = payloads.pull_request_event(gate.pull.head, gate.pull.main, action="labeled")
        event |= {"label": {"name": "agentevals:accept"}, "sender": payloads.user("ada")}
        assert finish(gate, "pull_request", event).code == 1


@pytest.mark.slow
def test_shards__each_confirms_its_part_and_the_merge_decides(tmp_path: Path, files: Files) -> None:
    with opened(tmp_path, files, agent(0.013)) as gate:
        reports = []
        for shard in ("1/2", "2/2"):
            done = finish(gate, shard=shard)
            assert done.code == 0, done.log
            reports.append(gate.report)
        job = gate.job(inputs={"mode": "merge", **LIMITS})
        for number, report in enumerate(reports, 1):
            shutil.copytree(report, job.workspace / f"agentevals-report/shards/{number}-1")
        merged = job.finish()
        assert merged.code == 1, merged.log
        assert FAILED in gate.comments()[0]
        assert increases(gate)["cost"]["fresh"]["pairs"] == 6
        assert increases(gate)["latency"]["outcome"] == "passed"


def test_schedule__a_rise_without_the_tree_of_base_is_not_confirmed(
    tmp_path: Path, files: Files
) -> None:
    with opened(tmp_path, files, agent(0.013)) as gate:
        push(gate)
        event, main = payloads.schedule_event(), gate.pull.main
        same = finish(gate, "schedule", event, main)
        assert same.code == 0, same.log
        done = finish(gate, "schedule", event, main, times="2")
        assert done.code == 3, done.log
        reason = "it rose and could not be confirmed: base has stored results alone"
        assert f"could not be decided: {reason}" in done.log
        assert gate.summary["spent"]["costUsd"] == pytest.approx(6 * 0.02)
