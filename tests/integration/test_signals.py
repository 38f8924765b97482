"""Signals at random moments of a whole review: git, agents, judges, GitHub's API."""

import contextlib
import os
import random
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import command, payloads
from tests.support.github_server import GitHubServer
from tests.support.job import Job
from tests.support.repositories import pull_request

#: Signals in all; 1,000 were sent before a release of the part that handles them.
COUNT = int(os.environ.get("AGENTEVALS_SIGNALS", "100"))
#: Reviews at once: on most machines more than there are processors.
AT_ONCE = 4
#: Seconds after which a process hangs, on a machine that is as busy as this test makes it.
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
FILES = {
    "evals/EVAL.yaml": SUITE,
    "evals/judge.sh": 'sleep 0.1; echo "{\\"score\\": 1}"\n',
    "evals/start/notes.md": "x\n",
    "agent.sh": 'read name; sleep 0.1; echo "Good day, $name."\n',
    ".agentv/targets.yaml": (
        "targets:\n  - {name: default, provider: cli, command: [sh, /agent.sh], cwd: /}\n"
    ).replace("/agent.sh", "agent.sh"),
}


def job(folder: Path, server: GitHubServer) -> Job:
    pull = pull_request(folder / "origin", FILES, {"agent.sh": f"{FILES['agent.sh']}# changed\n"})
    server.add_pull(7, pull.head, pull.main)
    event = payloads.pull_request_event(pull.head, pull.main, 7)
    workspace = pull.checkout(folder / "workspace", pull.merge, 2).path
    (folder / "temp").mkdir()
    env = {"TMPDIR": str(folder / "temp")}
    return Job(workspace, server, event, pull.merge, folder / "runner", env=env)


def start(review: Job, *, warm: bool) -> "command.Process | subprocess.Popen[str]":
    if warm:
        return review.start()
    return subprocess.Popen(
        [*command.COMMAND, "action"],
        cwd=review.workspace,
        env=review.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def interrupt(folder: Path, count: int, seed: int) -> list[str]:
    """Sends signals to so many reviews; what was wrong."""
    chance, wrong = random.Random(seed), list[str]()
    with GitHubServer() as server:
        review = job(folder, server)
        seconds = {warm: duration(review, warm=warm) for warm in (True, False)}
        for _ in range(count):
            # One in four starts with an interpreter, which imports everything.
            warm, number = chance.random() < 0.75, chance.choice((signal.SIGINT, signal.SIGTERM))
            moment = chance.uniform(0, seconds[warm] * 1.1)
            before = len(server.check_runs)
            begin = time.monotonic()
            process = start(review, warm=warm)
            try:
                process.wait(moment)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    process.send_signal(number)
            what = f"{number.name} after {moment:.3f} s of {seconds[warm]:.1f} s"
            try:
                log, _ = process.communicate(timeout=moment + LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
                return [*wrong, f"{what}: it hangs"]
            took = time.monotonic() - begin - moment
            checks = [check.conclusion for check in server.check_runs[before:]]
            # Before the program's first line, the signal's own effect ends the process.
            interrupted = process.returncode in (128 + number, -number)
            problems = [
                f"exit code {process.returncode}" if not interrupted and process.returncode else "",
                f"checks {checks}" if checks not in ([], ["cancelled"], ["success"]) else "",
                f"no check, exit code {process.returncode}"
                if not checks and not interrupted
                else "",
                *left(folder, review.workspace),
            ]
            wrong += [f"{what}: {one} (ended after {took:.1f} s)\n{log}" for one in problems if one]
    return wrong


def duration(review: Job, *, warm: bool) -> float:
    begin = time.monotonic()
    with start(review, warm=warm) as process:
        log, _ = process.communicate(timeout=100)
    assert process.returncode == 0, log
    return time.monotonic() - begin


def left(folder: Path, workspace: Path) -> list[str]:
    """What a review left: processes, locks, worktrees, temporary files."""
    return [
        *(f"the process {pid} runs" for pid in running(folder)),
        *(f"{path} exists" for path in (workspace / ".git").rglob("*.lock")),
        *(f"{path} exists" for path in (workspace / ".git").glob("worktrees/*")),
        *(f"{path} exists" for path in (folder / "temp").iterdir()),
    ]


def running(folder: Path) -> list[str]:
    """The processes whose folder is in this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if (entry / "cwd").readlink().is_relative_to(folder):
                    found.append(entry.name)
            except OSError:  # it has ended
                continue
    return found


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_signal__at_any_moment_ends_a_review_and_leaves_nothing(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(AT_ONCE)]
    seed = random.randrange(1_000_000)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        parts = [
            pool.submit(interrupt, folder, -(-COUNT // AT_ONCE), seed + number)
            for number, folder in enumerate(folders)
        ]
        wrong = [problem for part in parts for problem in part.result()]
    assert wrong == [], f"seed {seed}"
