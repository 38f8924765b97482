"""What large suites cost, measured and printed: `python benchmarks/scale.py` (a few minutes;
`--tests 20000` for a shorter look).

A JSONL of N tests is validated, and suites of N/20 and N/2 tests are run against a mock: time, and
the peak of memory, which must not follow the length of the file. Every figure is that of a process
of its own, by the command that a user would type."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

TARGETS = 'targets:\n  - {name: default, provider: mock, responses: [{pattern: ".*", response: hello there}]}\n'
SUITE = "name: scale\nassert: [{type: contains, value: hello}]\ntests: rows.jsonl\n"


def write(folder: Path, tests: int) -> None:
    """A suite of so many tests, with two messages, a reference, metadata and two evaluators
    each."""
    (folder / ".agentv").mkdir(parents=True)
    (folder / ".agentv/targets.yaml").write_text(TARGETS, encoding="utf-8")
    (folder / "EVAL.yaml").write_text(SUITE, encoding="utf-8")
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:
        for number in range(tests):
            question = f"Say hello to customer {number}, please."
            row = {
                "id": f"test-{number:07}",
                "input": [
                    {"role": "system", "content": "You are kind."},
                    {"role": "user", "content": question},
                ],
                "expected_output": "hello",
                "assert": [{"type": "regex", "value": "^hello"}],
                "metadata": {"kind": "greeting", "number": number},
            }
            file.write(json.dumps(row) + "\n")


def measured(folder: Path, arguments: Sequence[str]) -> tuple[float, float]:
    """Seconds and the peak of memory in megabytes of one command; CalledProcessError if it
    fails."""
    command = [sys.executable, "-m", "agentevals_action", *arguments]
    started = time.perf_counter()
    child = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    output = child.stderr.read() if child.stderr else ""
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command, stderr=output)
    return seconds, usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1024 * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--tests",
        type=int,
        default=100_000,
        help="tests of the largest suite (default: %(default)s)",
    )
    wanted = parser.parse_args().tests
    runs = (("validate", wanted), ("run", wanted // 20), ("run", wanted // 2))
    print(
        "| command | tests | seconds | tests a second | peak of memory |\n| --- | ---: | ---: | ---: | ---: |"
    )
    for command, tests in runs:
        with tempfile.TemporaryDirectory(prefix="agentevals-scale-") as temp:
            write(Path(temp) / "suite", tests)
            seconds, megabytes = measured(Path(temp) / "suite", [command])
        print(
            f"| {command} | {tests:,} | {seconds:.1f} | {tests / seconds:,.0f} | {megabytes:.0f} MB |",
            flush=True,
        )


if __name__ == "__main__":
    main()
