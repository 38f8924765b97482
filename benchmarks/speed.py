"""Measures what runs cost in time and memory and prints a table: `python benchmarks/speed.py`.

Each figure is of complete processes: the median of five runs, in a folder in memory. The floor is
what the waiting or the child processes alone need, measured in between: a bare asyncio client
against the same server, or the same processes two at a time. With `--peers FOLDER`, other tools are
installed there from npm and PyPI and do the same work in their own format; each row then shows the
ratio to the best of them, next to the goal of that ratio."""

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
FLOOR_PROCESSES = 2  # at a time

JUDGE = """import json, sys
case = json.load(sys.stdin)
print(json.dumps({"score": 1.0, "hits": ["read"], "misses": []}))
"""
# It reads and writes JSON, as an agent that asks a model does.
AGENT = """import json, sys
prompt = sys.stdin.read()
print(json.dumps({"output": f"hello there, {len(prompt)} characters"}))
"""


@dataclass(frozen=True)
class Workload:
    """One row of the table: a suite of `tests` tests for `target`, each scored by `evaluators`, in
    the command in `arguments`.

    `goal` is the highest ratio to the best peer, of the time or, with `memory`, of the peak of
    memory. `requests` and `concurrency` are the HTTP floor's, `child` is the program of the floor
    of processes."""

    name: str
    title: str
    goal: float
    tests: int
    target: Mapping[str, object]
    evaluators: Sequence[Mapping[str, object]]
    arguments: Sequence[str] = ("run",)
    requests: int = 0
    concurrency: int = 0
    child: str = ""
    memory: bool = False


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


def _http(name: str, goal: float, concurrency: int, judges: int = 0) -> Workload:
    title = (
        f"200 tests over HTTP that replies in {stand_in.SECONDS * 1000:.0f} ms, "
        f"{concurrency} concurrent calls{f', {judges} LLM judges each' if judges else ''}"
    )
    evaluators = tuple(
        {"type": "llm_judge", "name": f"judge-{number}", "prompt": "Is hello said? {{answer}}"}
        for number in range(judges)
    )
    return Workload(
        name,
        title,
        goal,
        200,
        {**MODEL, "max_concurrency": concurrency},
        evaluators or CONTAINS,
        ("run", "--max-concurrency", str(concurrency)),
        requests=200 * (1 + judges),
        concurrency=concurrency,
    )


_MOCK_TESTS = "mock tests, two deterministic evaluators each"
WORKLOADS = (
    Workload("validate", "`validate` one suite", 0.8, 1, MOCK, CONTAINS, ("validate",)),
    Workload("mock", f"1,000 {_MOCK_TESTS}", 0.5, 1_000, MOCK, CONTAINS),
    _http("http10", 0.85, 10),
    _http("http50", 0.85, 50),
    _http("judges", 0.95, 10, judges=3),
    Workload("code", "100 Python code judges", 0.6, 100, MOCK, (PROGRAM,), child="judge.py"),
    Workload("cli", "100 `cli` agents in Python", 0.6, 100, PYTHON, CONTAINS[:1], child="agent.py"),
    Workload("memory", f"5,000 {_MOCK_TESTS}: memory", 0.5, 5_000, MOCK, CONTAINS, memory=True),
)


def write(folder: Path, workload: Workload, port: int) -> None:
    """Writes the workload as a repository with one suite."""
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
    """Runs a command and measures it; CalledProcessError if it fails."""
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        child = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
        )
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            output.seek(0)
            raise subprocess.CalledProcessError(
                child.returncode, [*map(str, command)], output=output.read()[-2000:]
            )
    megabytes = usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024 * 1024)
    return Run(seconds, usage.ru_utime + usage.ru_stime, megabytes)


def measure_floor(workload: Workload, folder: Path, port: int) -> float | None:
    """The least possible time in seconds; None for a workload without waiting and child
    processes."""
    started = time.perf_counter()
    if workload.requests:
        asyncio.run(stand_in.clients(port, workload.requests, workload.concurrency))
    elif workload.child:
        with ThreadPoolExecutor(FLOOR_PROCESSES) as pool:
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
    """One row of the table; everything is measured in turn, so that other work of the machine
    affects all alike."""
    floors: list[float] = []
    runs: list[Run] = []
    with tempfile.TemporaryDirectory(
        prefix="agentevals-speed-", dir=MEMORY if MEMORY.is_dir() else None
    ) as temp:
        folder = Path(temp) / "ours"
        write(folder, workload, port)
        others = [
            Measured(tool.prepare(workload.name, Path(temp) / tool.name, port)) for tool in tools
        ]
        for _ in range(times):
            if (floor := measure_floor(workload, folder, port)) is not None:
                floors.append(floor)
            runs.append(run_ours(workload, folder))
            for other in others:
                other.run_again()
    ours = figure(runs, workload.memory)
    best = min((figure(other.runs, workload.memory) for other in others if other.runs), default=0.0)
    return row(
        workload.title,
        f"{median(floors):.2f} s" if floors else "–",
        *described(runs),
        *(other.described() for other in others),
        f"{ours / best:.2f}" if best else "–",
        f"≤ {workload.goal}",
    )


def run_ours(workload: Workload, folder: Path) -> Run:
    # Results of an earlier run are read for an estimate.
    shutil.rmtree(folder / "agentevals-report", ignore_errors=True)
    return run([sys.executable, "-m", "agentevals_action", *workload.arguments], folder)


def figure(runs: Sequence[Run], memory: bool) -> float:
    if memory:
        return max(run.megabytes for run in runs)
    return median(run.seconds for run in runs)


def described(runs: Sequence[Run]) -> tuple[str, str, str]:
    """Median time, median processor time, peak of memory."""
    return (
        f"{median(run.seconds for run in runs):.2f} s",
        f"{median(run.cpu for run in runs):.2f} s",
        f"{max(run.megabytes for run in runs):.0f} MB",
    )


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


class Measured:
    """A peer's runs of one workload; one that fails is its last, and the table says so."""

    def __init__(self, job: peers.Job | None) -> None:
        self._job = job
        self._problem = ""
        self.runs: list[Run] = []

    def run_again(self) -> None:
        if self._job is None or self._problem:
            return
        try:
            self.runs.append(run(self._job.command, self._job.folder, self._job.environment))
        except (OSError, subprocess.CalledProcessError) as error:
            self._problem = "failed"
            self.runs.clear()
            output = error.output if isinstance(error, subprocess.CalledProcessError) else error
            print(f"{self._job.command}: {output!r}", file=sys.stderr)

    def described(self) -> str:
        if self._problem or not self.runs:
            return self._problem or "–"
        seconds, _, megabytes = described(self.runs)
        return f"{seconds}, {megabytes}"


def main() -> None:
    names = [workload.name for workload in WORKLOADS]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "workloads", nargs="*", metavar="WORKLOAD", help=f"any of {', '.join(names)} (default: all)"
    )
    parser.add_argument(
        "--times", type=int, default=5, help="runs of each, for the median (default: %(default)s)"
    )
    parser.add_argument(
        "--peers",
        type=Path,
        metavar="FOLDER",
        help="also measure other tools, which are installed into this folder once",
    )
    options = parser.parse_args()
    os.environ.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # an installed program is compiled, as peers are
    if unknown := set(options.workloads) - set(names):
        parser.error(f"there is no workload {', '.join(sorted(unknown))}")
    chosen = options.workloads or names
    tools = peers.installed(options.peers.resolve()) if options.peers else []
    titles = [
        *("workload", "floor", "agentevals-action", "processor", "peak memory"),
        *(tool.name for tool in tools),
        "ratio to the best peer",
        "goal",
    ]
    print(row(*titles), f"| --- |{' ---: |' * (len(titles) - 1)}", sep="\n", flush=True)
    with server() as port:
        for workload in WORKLOADS:
            if workload.name in chosen:
                print(measure(workload, options.times, port, tools), flush=True)


if __name__ == "__main__":
    main()
