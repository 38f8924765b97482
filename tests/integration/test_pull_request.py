"""A pull request is gated, end to end: the action's process, real git at depth 1, GitHub's API over
HTTP."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support import command, payloads
from tests.support.gate import Gate, opened
from tests.support.job import Job
from tests.support.repositories import Files

ROOT = Path(__file__).resolve().parents[2]

SUITE = """\
name: greeter
tests:
  - id: greets
    criteria: greets by name
    input: Ada
    assert:
      - {name: polite, type: contains, value: "Good day"}
      - name: by-name
        type: contains
        value: Ada
        required: true
  - id: short
    criteria: is short
    input: Bob
    assert:
      - {type: regex, value: "^.{0,40}$"}
"""
GATE_LINE = 8
TARGETS = "targets:\n  - {name: default, provider: cli, command: [sh, agent.sh], cwd: /}\n"
#: An agent without a process.
MOCK = "targets:\n  - {name: default, provider: mock, response: Good day}\n"
GOOD = 'read name; echo "Good day, $name."\n'
NAMELESS = 'read name; echo "Good day."\n'
BASE: Files = {"evals/EVAL.yaml": SUITE, ".agentv/targets.yaml": TARGETS, "agent.sh": GOOD}


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """A change after which the agent does not give the name. One sample decides."""
    with opened(tmp_path, BASE, {"agent.sh": NAMELESS}, inputs={"confirm": "0"}) as gate:
        yield gate


def test_gate__a_broken_required_gate_blocks(gate: Gate) -> None:
    done = gate.job(depth=1, inputs={"confirm": "6"}).finish()
    assert done.code == 1, done.log
    (body,) = gate.comments()
    assert "[!CAUTION]" in body
    assert gate.conclusions() == [(gate.pull.head, "failure")]
    (check,) = gate.server.check_runs
    assert check.status == "completed"
    failures = [
        annotation
        for annotation in check.annotations
        if annotation["annotation_level"] == "failure"
    ]
    assert [(annotation["path"], annotation["start_line"]) for annotation in failures] == [
        ("evals/EVAL.yaml", GATE_LINE)
    ]
    outputs = {
        **{"outcome": "failed", "passed": "1", "failed": "1", "regressions": "1"},
        **{"head-sha": gate.pull.head, "base-sha": gate.pull.main},
    }
    assert done.outputs.items() >= outputs.items()
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert done.outputs.keys() == action["outputs"].keys()
    assert "#issuecomment-" in done.outputs["comment-url"]
    assert "by-name" in done.summary


def test_gate__a_fix_turns_both_green_in_the_same_comment(gate: Gate) -> None:
    gate.job().finish()
    gate.push({"agent.sh": GOOD + "# fixed\n"})
    done = gate.job().finish()
    assert done.code == 0, done.log
    assert len(gate.server.comments) == 1
    assert "Passed" in gate.comments()[0]
    assert gate.conclusions()[-1] == (gate.pull.head, "success")


def test_gate__no_suite_touched_is_a_passed_check_with_the_reason(gate: Gate) -> None:
    gate.push({"agent.sh": GOOD, "README.md": "hello"})
    done = gate.job().finish()
    assert done.code == 0, done.log
    (check,) = gate.server.check_runs
    assert check.conclusion == "success"
    assert "the change affects no suite" in f"{check.summary} {check.title}"


def test_gate__a_base_that_cannot_be_fetched_is_inconclusive_with_advice(gate: Gate) -> None:
    gate.push({"agent.sh": GOOD + "# fine\n"})
    job = gate.job(depth=1)
    config = job.workspace / ".git/config"
    config.write_text(config.read_text().replace("origin", "gone"))
    done = job.finish()
    assert done.code == 3, done.log
    assert "fetch-depth: 2" in gate.comments()[0]
    assert gate.server.check_runs[0].conclusion == "failure"


def test_gate__an_error_of_a_suite_is_annotated_at_its_line(gate: Gate) -> None:
    broken = SUITE.replace("        type: contains", "        type: contians")
    gate.push({"evals/EVAL.yaml": broken})
    done = gate.job().finish()
    assert (done.code, done.outputs["outcome"]) == (2, "invalid")
    (check,) = gate.server.check_runs
    assert [(annotation["path"], annotation["start_line"]) for annotation in check.annotations] == [
        ("evals/EVAL.yaml", GATE_LINE + 1)
    ]


def test_gate__no_permission_still_blocks_and_is_named(gate: Gate) -> None:
    gate.server.permissions |= {"pull-requests": "read", "issues": "read", "checks": "read"}
    done = gate.job().finish()
    assert done.code == 1
    assert gate.server.comments == ()
    assert f"::error file=evals/EVAL.yaml,line={GATE_LINE}," in done.log
    assert "checks: write" in done.summary
    assert "pull-requests: write" in done.summary


def test_gate__a_fork_without_secrets_is_inconclusive_and_names_the_variable(gate: Gate) -> None:
    targets = (
        "targets:\n  - {name: default, provider: openai, model: m, api_key: '${{ AGENT_KEY }}'}\n"
    )
    gate.push({".agentv/targets.yaml": targets})
    event = payloads.pull_request_event(gate.pull.head, gate.pull.main, fork=True)
    done = gate.job(event=event).finish()
    assert done.code == 3, done.log
    assert "AGENT_KEY" in done.log
    assert gate.server.check_runs[-1].conclusion == "action_required"
    assert f"`/agentevals run {gate.pull.head[:12]}`" in gate.comments()[-1]
    at_home = gate.job().finish()
    assert at_home.code == 2
    assert "AGENT_KEY" in at_home.log


def test_gate__pull_request_target_is_refused_with_a_check_and_an_outcome(gate: Gate) -> None:
    job = gate.job("pull_request_target")
    job.sha = gate.pull.main
    done = job.finish()
    assert (done.code, done.outputs["outcome"]) == (2, "invalid"), done.log
    assert "::error::the event `pull_request_target` is refused" in done.log
    assert "the event `pull_request_target` is refused" in done.summary
    assert gate.conclusions() == [(gate.pull.head, "failure")]
    assert gate.comments() == []


def test_gate__invalid_inputs_are_all_reported_at_once(gate: Gate) -> None:
    inputs = {"samples": "many", "strict": "yes", "fail-on": "gatez", "check-name": "our gate"}
    done = gate.job(inputs=inputs).finish()
    assert (done.code, done.outputs["outcome"]) == (2, "invalid"), done.log
    (check,) = gate.server.check_runs
    assert (check.name, check.head_sha) == ("our gate", gate.pull.head)
    assert (check.status, check.conclusion) == ("completed", "failure")
    for name in ("samples", "strict", "fail-on"):
        assert f"::error::input `{name}`" in done.log
        assert name in gate.comments()[0]
        assert name in (check.summary or "")


def test_gate__merge_group_gets_its_check(gate: Gate) -> None:
    event = payloads.merge_group_event(gate.pull.merge, gate.pull.main)
    done = gate.job("merge_group", event).finish()
    assert done.code == 1, done.log
    assert gate.conclusions() == [(gate.pull.merge, "failure")]
    assert gate.server.comments == ()


def test_gate__another_event_writes_the_summary_alone(gate: Gate) -> None:
    done = gate.job("release", {"action": "published"}).finish()
    assert done.code == 1
    assert gate.server.check_runs == ()
    assert "greets" in done.summary


def test_gate__the_log_has_no_command_of_an_agent_and_no_secret(gate: Gate) -> None:
    evil = 'read name; printf "::add-mask::Good day\\n::error::gotcha %s $AGENT_TOKEN\\n" "$name" >&2; exit 3\n'
    gate.push({"agent.sh": evil})
    secret = "ghp_ThisIsASecretOfTheAgent"
    done = gate.job(env={"AGENT_TOKEN": secret}, inputs={"env": "AGENT_TOKEN"}).finish()
    assert done.code == 3, done.log
    everything = done.log + done.summary + "".join(gate.comments()) + str(gate.server.check_runs)
    assert secret not in everything
    assert gate.server.token not in done.log
    own = ("::group::", "::endgroup::", "::warning", "::error file=")
    lines = (line for line in done.log.splitlines() if line.lstrip().startswith("::"))
    assert [line for line in lines if not line.startswith(own)] == []


def test_gate__a_report_folder_that_cannot_be_written_is_reported_everywhere(gate: Gate) -> None:
    gate.push({"agentevals-report/results.jsonl/file": "x"})
    done = gate.job().finish()
    assert (done.code, done.outputs["outcome"]) == (2, "invalid"), done.log
    assert "report-dir" in gate.comments()[0]
    assert gate.server.check_runs[0].conclusion == "failure"


def test_gate__a_report_folder_that_leads_out_of_the_workspace_is_not_written(gate: Gate) -> None:
    job = gate.job()
    outside = job.workspace.parent / "outside"
    outside.mkdir()
    (job.workspace / "agentevals-report").symlink_to("../outside")
    done = job.finish()
    assert (done.code, done.outputs["outcome"]) == (2, "invalid"), done.log
    assert "a link leads to another folder" in gate.comments()[0]
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("link", ["../outside", "inside"])
def test_gate__an_agent_that_makes_a_link_of_the_report_folder_leads_no_file_elsewhere(
    gate: Gate, link: str
) -> None:
    replaced = f"test -d moved || mv agentevals-report moved; ln -sfn {link} agentevals-report\n"
    gate.push({"agent.sh": f"{replaced}{GOOD}"})
    job = gate.job(inputs={"baseline": "none"})
    elsewhere = job.workspace / link
    elsewhere.mkdir()
    done = job.finish()
    assert done.code == 3, done.log
    assert "run.json cannot be written: a link leads to another folder" in gate.comments()[0]
    assert list(elsewhere.iterdir()) == []


def many(number: int, more: str = "") -> Files:
    """Tests that pass and write more than a small file can hold, and `more`."""
    tests = "".join(
        f"  - {{id: t{index}, input: x, assert: [{{type: contains, value: Good}}]}}\n"
        for index in range(number)
    )
    suite = f"name: greeter\ntests:\n{tests}{more}"
    return {"evals/EVAL.yaml": suite, ".agentv/targets.yaml": MOCK}


def test_gate__a_full_disk_makes_a_pass_inconclusive_and_is_reported_everywhere(
    gate: Gate,
) -> None:
    gate.push(many(60))
    done = gate.job(kilobytes=32, inputs={"baseline": "none"}).finish()
    assert done.code == 3, done.log
    (body,) = gate.comments()
    assert "> [!WARNING]\n> **Inconclusive:** " in body
    assert "results.jsonl cannot be written: File too large" in body
    assert gate.conclusions() == [(gate.pull.head, "failure")]
    assert done.outputs["outcome"] == "inconclusive"
    assert (done.outputs["passed"], done.outputs["pass-rate"]) == ("60", "1.0000")
    assert "check that the disk has free space" in done.summary
    assert "Traceback" not in done.log


def test_gate__a_full_disk_hides_no_failure(gate: Gate) -> None:
    broken = "  - {id: broken, input: x, assert: [{type: contains, value: no, required: true}]}\n"
    gate.push(many(60, broken))
    inputs = {"on-inconclusive": "pass", "baseline": "none"}
    done = gate.job(kilobytes=32, inputs=inputs).finish()
    assert (done.code, done.outputs["outcome"]) == (1, "failed"), done.log
    assert gate.conclusions() == [(gate.pull.head, "failure")]
    assert "results.jsonl cannot be written: File too large" in done.summary


#: What an agent does to a file of the runner, whose path it knows.
ATTACKS_ON_OUTPUTS = {
    "an output": "printf 'outcome=passed\\n' >> FILE",
    "a device": "rm FILE; ln -s /dev/zero FILE",
}


@pytest.mark.parametrize("attack", ATTACKS_ON_OUTPUTS)
def test_gate__an_agent_that_attacks_a_file_of_the_runner_changes_nothing(
    gate: Gate, attack: str
) -> None:
    path = gate.folder / "1001" / "runner" / "github_output"
    action = ATTACKS_ON_OUTPUTS[attack].replace("FILE", f'"{path}"')
    gate.push({"agent.sh": f'test -e "{path}" && {{ {action}; }}\n{NAMELESS}'})
    done = gate.job(inputs={"max-concurrency": "1"}).finish()
    assert (done.code, done.outputs["outcome"]) == (1, "failed"), done.log
    assert "passed" not in done.outputs.values()
    assert "**Failed:**" in done.summary


#: What an agent does to the report folder, and a part of the problem that follows.
ATTACKS_ON_RESULTS = {
    "rewritten": ("echo '{}' > $RESULTS", ""),
    "a fifo for base": ("mkfifo agentevals-report/base.jsonl", ""),
    "a link": ("ln -sf ../agent.sh $RESULTS", ""),
    "a folder": ("rm -f $RESULTS; mkdir $RESULTS", "results.jsonl cannot be written"),
}


@pytest.mark.parametrize("attack", ATTACKS_ON_RESULTS)
def test_gate__an_agent_that_attacks_the_results_changes_no_failure(
    gate: Gate, attack: str
) -> None:
    action, notice = ATTACKS_ON_RESULTS[attack]
    action = action.replace("$RESULTS", "agentevals-report/results.jsonl")
    gate.push({"agent.sh": f"{action}\n{NAMELESS}"})
    job = gate.job(inputs={"max-concurrency": "1", "on-inconclusive": "pass"})
    done = job.finish()
    assert (done.code, done.outputs["outcome"]) == (1, "failed"), done.log
    assert gate.conclusions() == [(gate.pull.head, "failure")]
    assert notice in gate.comments()[0]
    assert (job.workspace / "agent.sh").read_text().startswith(action)
    if "cannot be written" not in notice:
        rows = (job.workspace / "agentevals-report/results.jsonl").read_text().splitlines()
        assert [json.loads(row)["verdict"] for row in rows] == ["fail", "pass"]


def test_gate__a_program_that_cannot_be_started_is_named_even_if_its_check_is_green(
    gate: Gate,
) -> None:
    """`on-inconclusive: pass` is what the workflow asks for; the outcome is not `passed`."""
    targets = TARGETS.replace("[sh, agent.sh]", "[no-such-program, agent.sh]")
    gate.push({".agentv/targets.yaml": targets})
    done = gate.job(inputs={"on-inconclusive": "pass"}).finish()
    assert (done.code, done.outputs["outcome"]) == (0, "inconclusive"), done.log
    (check,) = gate.server.check_runs
    assert check.conclusion == "success"
    assert (check.title or "").startswith("Inconclusive: ")
    assert "no-such-program" in gate.comments()[0]


def start_slow_agent(gate: Gate, mark: Path) -> tuple[Job, command.Process]:
    """A run whose agent has made the file `mark` and does not answer."""
    gate.push({"agent.sh": f'touch "{mark}"; sleep 60\n'})
    job = gate.job()
    process = job.start()
    command.wait_for(mark, process)
    return job, process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_gate__a_signal_writes_a_cancelled_check(
    gate: Gate, tmp_path: Path, number: signal.Signals
) -> None:
    job, process = start_slow_agent(gate, tmp_path / "mark")
    assert not gate.server.check_runs
    process.send_signal(number)
    log, _ = process.communicate(timeout=20)
    assert process.returncode == 128 + number, log
    assert gate.conclusions() == [(gate.pull.head, "cancelled")]
    worktrees = subprocess.run(
        ["git", "worktree", "list"], cwd=job.workspace, capture_output=True, text=True, check=True
    )
    assert len(worktrees.stdout.splitlines()) == 1
