"""What runs cost in time and memory, measured and printed as a table: `python benchmarks/speed.py`
(two minutes on two cores).

Every figure is of whole processes, start-up included, the median of at least five runs in a
memory-backed folder. The floor is what the waiting or the children alone need, measured in between:
a bare asyncio client against the same server, the same processes two at a time. With `--peers
FOLDER` other tools are installed there from npm and PyPI and do the same work in their own format.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import peers
import stand_in

HERE = Path(__file__).parent
MEMORY = Path("/dev/shm")
AT_ONCE = 2  # of the floor's processes

JUDGE = """import json, sys
case = json.load(sys.stdin)
print(json.dumps({"score": 1.0, "hits": ["read"], "misses": []}))
"""
# It reads and writes JSON too, since no agent that asks a model can do without: half of its time is
# the loading of `json`.
AGENT = """import json, sys
prompt = sys.stdin.read()
print(json.dumps({"output": f"hello there, {len(prompt)} characters"}))
"""


@dataclass(frozen=True)
class Workload:
    """One row of the table: a suite of `tests` tests put to `target`, each graded by `evaluators`,
    by the command in `arguments`; `requests` and `at_once` are what the HTTP floor does, `child`
    the program that the floor of processes runs."""

    name: str
    title: str
    tests: int
    target: Mapping[str, object]
    evaluators: Sequence[Mapping[str, object]]
    arguments: Sequence[str] = ("run",)
    requests: int = 0
    at_once: int = 0
    child: str = ""


CONTAINS = ({"type": "contains", "value": "hello"}, {"type": "regex", "value": "hel+o"})
MOCK = {"provider": "mock", "responses": [{"pattern": ".*", "response": "hello there"}]}
MODEL = {
    "provider": "openai",
    "model": "stand-in",
    "base_url": "http://127.0.0.1:PORT/v1",
    "api_key": "none",
}
PROGRAM = {"type": "code_judge", "script": [sys.executable, "judge.py"]}
PYTHON = {"provider": "cli", "command": [sys.executable, "agent.py"]}


def _http(name: str, at_once: int, judges: int = 0) -> Workload:
    asked = f", {judges} LLM judges each" if judges else ""
    title = f"200 tests over HTTP that answers in {stand_in.SECONDS * 1000:.0f} ms, {at_once} calls at once{asked}"
    graded = tuple(
        {"type": "llm_judge", "name": f"judge-{number}", "prompt": "Is hello said?"}
        for number in range(judges)
    )
    target = {**MODEL, "max_concurrency": at_once}
    arguments = ("run", "--max-concurrency", str(at_once))
    return Workload(
        name,
        title,
        200,
        target,
        graded or CONTAINS,
        arguments,
        requests=200 * (1 + judges),
        at_once=at_once,
    )


WORKLOADS = (
    Workload("validate", "`validate` one suite", 1, MOCK, CONTAINS, ("validate",)),
    Workload("mock", "1,000 mock tests, two deterministic assertions each", 1_000, MOCK, CONTAINS),
    _http("http10", 10),
    _http("http50", 50),
    _http("judges", 10, judges=3),
    Workload("code", "100 Python code judges", 100, MOCK, (PROGRAM,), child="judge.py"),
    Workload(
        "cli",
        "100 `cli` agents in Python",
        100,
        PYTHON,
        ({"type": "contains", "value": "hello"},),
        child="agent.py",
    ),
    Workload("memory", "5,000 mock tests", 5_000, MOCK, CONTAINS),
)


def write(folder: Path, workload: Workload, port: int) -> None:
    """The workload as a repository that holds one suite."""
    (folder / ".agentv").mkdir(parents=True)
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")
    (folder / "judge.py").write_text(JUDGE, encoding="utf-8")
    # JSON is YAML too.
    targets = json.dumps({"targets": [{"name": "default", **workload.target}]}).replace(
        "PORT", str(port)
    )
    (folder / ".agentv/targets.yaml").write_text(targets, encoding="utf-8")
    rows = [
        {"id": f"test-{number:05}", "input": f"Say hello to customer {number}."}
        for number in range(workload.tests)
    ]
    (folder / "tests.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    suite = {"name": "speed", "assert": workload.evaluators, "tests": "tests.jsonl"}
    (folder / "EVAL.yaml").write_text(json.dumps(suite), encoding="utf-8")


@dataclass(frozen=True)
class Run:
    """One whole process: seconds, seconds of processor (its children's too), the peak of its own
    memory in MB."""

    seconds: float
    cpu: float
    megabytes: float


def run(
    command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None
) -> Run:
    """Runs a command and measures it; CalledProcessError when it fails, since a failure is
    quick."""
    with tempfile.TemporaryFile() as said:
        started = time.perf_counter()
        child = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment
        )
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            raise subprocess.CalledProcessError(
                child.returncode, [*map(str, command)], output=said.read()[-2000:]
            )
    megabytes = usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024 * 1024)
    return Run(seconds, usage.ru_utime + usage.ru_stime, megabytes)


def floor_of(workload: Workload, folder: Path, port: int) -> float | None:
    """Seconds that nothing can be quicker than; None for a workload that neither waits nor starts
    children."""
    started = time.perf_counter()
    if workload.requests:
        asyncio.run(stand_in.clients(port, workload.requests, workload.at_once))
    elif workload.child:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda _: _child(workload.child, folder), range(workload.tests)))
    else:
        return None
    return time.perf_counter() - started


def _child(program: str, folder: Path) -> None:
    subprocess.run(
        [sys.executable, program], cwd=folder, input=b"{}", stdout=subprocess.PIPE, check=True
    )


@contextmanager
def server() -> Iterator[int]:
    """The stand-in's port, for as long as it runs."""
    child = subprocess.Popen(
        [sys.executable, HERE / "stand_in.py"], stdout=subprocess.PIPE, text=True
    )
    try:
        yield int(child.stdout.readline() if child.stdout else "")
    finally:
        child.terminate()
        child.wait()


def measure(workload: Workload, times: int, port: int, tools: Sequence[peers.Peer]) -> str:
    """One row of the table: everything measured in turn, so that what else the machine does
    troubles all alike."""
    floors: list[float] = []
    runs: list[Run] = []
    with tempfile.TemporaryDirectory(
        prefix="agentevals-speed-", dir=MEMORY if MEMORY.is_dir() else None
    ) as temp:
        write(Path(temp) / "ours", workload, port)
        others = [
            Measured(tool.prepare(workload.name, Path(temp) / tool.name, port)) for tool in tools
        ]
        for _ in range(times):
            if (floor := floor_of(workload, Path(temp) / "ours", port)) is not None:
                floors.append(floor)
            shutil.rmtree(
                Path(temp) / "ours/agentevals-report", ignore_errors=True
            )  # an earlier run's results are read for an estimate
            runs.append(
                run(
                    [sys.executable, "-m", "agentevals_action", *workload.arguments],
                    Path(temp) / "ours",
                )
            )
            for other in others:
                other.turn()
    floor, ours = median(floors) if floors else None, median(one.seconds for one in runs)
    cells = [
        workload.title,
        f"{floor:.2f} s" if floor else "–",
        f"{ours:.2f} s",
        f"{ours / floor:.2f}" if floor else "–",
        f"{median(one.cpu for one in runs):.2f} s",
        f"{max(one.megabytes for one in runs):.0f} MB",
        *(other.told() for other in others),
    ]
    return f"| {' | '.join(cells)} |"


class Measured:
    """A peer's runs of one workload; one that fails is its last, and the table says so."""

    def __init__(self, job: peers.Job | None) -> None:
        self._job = job
        self._runs: list[Run] = []
        self._problem = ""

    def turn(self) -> None:
        """One more run."""
        if self._job is None or self._problem:
            return
        try:
            self._runs.append(run(self._job.command, self._job.folder, self._job.environment))
        except (OSError, subprocess.CalledProcessError) as error:
            self._problem = "failed"
            said = error.output if isinstance(error, subprocess.CalledProcessError) else error
            print(f"{self._job.command}: {said!r}", file=sys.stderr)

    def told(self) -> str:
        """The median time and the peak of memory."""
        if self._problem or not self._runs:
            return self._problem or "–"
        return f"{median(one.seconds for one in self._runs):.2f} s, {max(one.megabytes for one in self._runs):.0f} MB"


def main() -> None:
    names = [workload.name for workload in WORKLOADS]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "workloads", nargs="*", metavar="WORKLOAD", help=f"any of {', '.join(names)} (default: all)"
    )
    parser.add_argument(
        "--times",
        type=int,
        default=5,
        help="runs of each, of which the median is told (default: %(default)s)",
    )
    parser.add_argument(
        "--peers",
        type=Path,
        metavar="FOLDER",
        help="measure other tools too, which are installed into this folder once",
    )
    wanted = parser.parse_args()
    if unknown := set(wanted.workloads) - set(names):
        parser.error(f"there is no workload {', '.join(sorted(unknown))}")
    tools = peers.installed(wanted.peers.resolve()) if wanted.peers else []
    titles = [
        "workload",
        "floor",
        "agentevals-action",
        "× floor",
        "processor",
        "peak memory",
        *(tool.name for tool in tools),
    ]
    print(f"| {' | '.join(titles)} |\n| --- |{' ---: |' * (len(titles) - 1)}", flush=True)
    with server() as port:
        for workload in WORKLOADS:
            if not wanted.workloads or workload.name in wanted.workloads:
                print(measure(workload, wanted.times, port, tools), flush=True)


if __name__ == "__main__":
    main()
