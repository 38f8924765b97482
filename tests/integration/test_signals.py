"""Signals at random moments of a whole review: git, agents, judges, GitHub's API."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.gate import Gate, opened

#: How many signals are sent; before a release of what handles them, 1,000.
COUNT = int(os.environ.get("AGENTEVALS_SIGNALS", "50"))
#: Seconds after a signal after which a review hangs.
LIMIT = 100
SUITE = """\
name: greeter
tests:
  - id: greets
    input: Ada
    assert:
      - {type: contains, value: Ada, required: true}
      - {name: judge, type: code-grader, command: [sh, judge.sh]}
  - id: short
    input: Bob
    workspace: {template: start}
    assert: [{type: regex, value: "^.{0,40}$"}]
"""
AGENT = 'read name; sleep 0.1; echo "Good day, $name."\n'
FILES = {
    "evals/EVAL.yaml": SUITE,
    "evals/judge.sh": 'sleep 0.1; echo "{\\"score\\": 1}"\n',
    "evals/start/notes.md": "x\n",
    "agent.sh": AGENT,
    ".agentv/targets.yaml": "- {name: default, provider: cli, command: [sh, agent.sh], cwd: /}\n",
}


def interrupt(gate: Gate, number: signal.Signals, moment: float) -> list[str]:
    """What is wrong after a review that gets a signal after so many seconds."""
    before = len(gate.server.check_runs)
    temp = gate.folder / "temp"
    temp.mkdir(exist_ok=True)
    job = gate.job(env={"TMPDIR": str(temp)})
    process = job.start()
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    try:
        log, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        return ["it hangs"]
    code, was_interrupted = process.returncode, process.returncode in (128 + number, -number)
    checks = [check.conclusion for check in gate.server.check_runs[before:]]
    git = job.workspace / ".git"
    found = [*git.rglob("*.lock"), *git.glob("worktrees/*"), *temp.iterdir(), *running(gate.folder)]
    problems = [f"{path} is left" for path in found]
    if code and not was_interrupted:
        problems.append(f"exit code {code}\n{log}")
    # Before the program's first line, the signal's own effect ends the process.
    if checks not in (["cancelled"], ["success"]) and not (was_interrupted and not checks):
        problems.append(f"exit code {code}, checks {checks}\n{log}")
    return problems


def running(folder: Path) -> list[Path]:
    """The processes whose folder is in this one."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append(process)
        except OSError:  # it has ended
            continue
    return found


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_signal__at_any_moment_ends_a_review_and_leaves_nothing(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    chance, wrong = random.Random(seed), {}
    with opened(tmp_path, FILES, {"agent.sh": f"{AGENT}# changed\n"}) as gate:
        began = time.monotonic()
        assert gate.job().finish().code == 0
        seconds = time.monotonic() - began
        for _ in range(COUNT):
            number = chance.choice((signal.SIGINT, signal.SIGTERM))
            moment = chance.uniform(0, seconds * 1.1)
            if problems := interrupt(gate, number, moment):
                wrong[f"{number.name} after {moment:.3f} s of {seconds:.1f} s"] = problems
    assert wrong == {}, f"seed {seed}"
