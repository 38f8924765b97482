"""A machine without free processes or memory: the gate ends with a completed check that names the
cause. A control group sets the limits."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.integration.test_pull_request import TARGETS, gate, many
from tests.support import command
from tests.support.gate import Gate
from tests.support.job import Job

__all__ = ["gate"]
CGROUPS = Path("/sys/fs/cgroup")
#: The folder and the file of a limit, in the first and the second version of control groups.
PIDS = (("pids", "pids.max"), ("", "pids.max"))
MEMORY = (("memory", "memory.limit_in_bytes"), ("", "memory.max"))

LimitedGroup = Callable[[tuple[tuple[str, str], ...], str], Path]


@pytest.fixture
def limited_group() -> Iterator[LimitedGroup]:
    """Makes a control group with one limit. Every process in it is killed at the end."""
    made: list[Path] = []

    def make(controller: tuple[tuple[str, str], ...], limit: str) -> Path:
        for folder, name in controller:
            group = CGROUPS / folder / f"agentevals-test-{uuid4().hex[:8]}"
            try:
                group.mkdir()
                made.append(group)
                (group / name).write_text(limit)
            except OSError:
                continue
            return group
        pytest.skip("control groups cannot be made here")

    yield make
    for group in made:
        while pids := (group / "cgroup.procs").read_text().split():
            for pid in pids:
                os.kill(int(pid), signal.SIGKILL)
            time.sleep(0.05)
        group.rmdir()


def run_in(group: Path, job: Job) -> tuple[int, str, dict[str, str]]:
    """Runs a job in a control group; its exit code, log and outputs."""
    with subprocess.Popen(
        [*command.COMMAND, "action"],
        cwd=job.workspace,
        env=job.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: (group / "cgroup.procs").write_text("0") and None,
    ) as process:
        log, _ = process.communicate(timeout=100)
    return process.returncode, log, job.outputs()


@pytest.mark.slow
def test_gate__without_a_free_process_is_a_failure_that_names_the_cause(
    gate: Gate, limited_group: LimitedGroup
) -> None:
    job = gate.job(inputs={"on-inconclusive": "pass"})
    code, log, outputs = run_in(limited_group(PIDS, "1"), job)
    assert (code, outputs["outcome"]) == (3, "inconclusive"), log
    (check,) = gate.server.check_runs
    assert (check.status, check.conclusion) == ("completed", "failure")
    assert "the machine has no process or thread left for the run" in (check.summary or "")
    assert "no process or thread left" in gate.comments()[0]
    assert "Traceback" not in log


#: Leaves processes of 10 MB each behind until the memory is full: each is smaller than the action.
#: Waits until the action has marked it as the first to end, which it does right after the start.
EATER = """\
import os, sys, time
name = sys.stdin.readline().strip()
while open("/proc/self/oom_score_adj").read().strip() != "1000":
    time.sleep(0.01)
if not os.fork():
    os.setsid()
    for fd in range(3):
        os.close(fd)
    for _ in range(60):
        if not os.fork():
            eaten = b"x" * 10_000_000
            time.sleep(30)
            os._exit(0)
        time.sleep(0.01)
    os._exit(0)
time.sleep(2)
print("Good day,", name)
"""


@pytest.mark.slow
def test_gate__agents_that_fill_the_memory_are_ended_and_not_the_action(
    gate: Gate, limited_group: LimitedGroup
) -> None:
    targets = TARGETS.replace("[sh, agent.sh]", "[python3, agent.py]")
    gate.push({**many(3), "agent.py": EATER, ".agentv/targets.yaml": targets})
    job = gate.job(inputs={"baseline": "none", "max-concurrency": "1"})
    code, log, outputs = run_in(limited_group(MEMORY, "300M"), job)
    assert code in (0, 3), log
    assert outputs["outcome"] in ("passed", "inconclusive")
    (check,) = gate.server.check_runs
    assert check.status == "completed"
