"""Measures what the imports of an agent in Python cost a run: `python benchmarks/python_agents.py`.

The agent needs 3 s for its imports (it sleeps, so that the figure does not depend on the number of
cores) and 50 ms for an answer. The same function answers 100 tests, 8 at once, as a target of
`python`, of `cli` with `serve`, and of `cli`, which imports it for each test."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

TESTS, CONCURRENCY = 100, 8
AGENT = """import json, pathlib, sys, time, uuid
time.sleep(3)
pathlib.Path("imports", uuid.uuid4().hex).touch()

def answer(messages):
    time.sleep(0.05)
    return "hello there"

def serve():
    for line in sys.stdin:
        question = json.loads(line)
        reply = answer(question["messages"])
        print(json.dumps({"call": question["call"], "reply": reply}), flush=True)

if __name__ == "__main__":
    serve() if "serve" in sys.argv else print(answer([{"role": "user", "content": sys.stdin.read()}]))
"""
TARGETS = {
    "python": {"provider": "python", "target": "agent:answer", "python": sys.executable},
    "cli, serve": {
        "provider": "cli",
        "command": [sys.executable, "agent.py", "serve"],
        "serve": True,
    },
    "cli": {"provider": "cli", "command": [sys.executable, "agent.py"]},
}


def measure(name: str) -> tuple[float, int]:
    """The seconds of a run, and the number of imports."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "imports").mkdir()
        (folder / ".agentv").mkdir()
        targets = {"targets": [{"name": "default", **TARGETS[name]}]}
        (folder / ".agentv/targets.yaml").write_text(json.dumps(targets))
        (folder / "agent.py").write_text(AGENT)
        rows = ({"id": f"test-{number}", "input": f"Greet {number}."} for number in range(TESTS))
        (folder / "tests.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        checks = [{"type": "contains", "value": "hello"}]
        suite = {"name": "speed", "assert": checks, "tests": "tests.jsonl"}
        (folder / "EVAL.yaml").write_text(json.dumps(suite))
        command = (sys.executable, "-m", "agentevals_action", "run")
        started = time.monotonic()
        subprocess.run(
            [*command, "--max-concurrency", str(CONCURRENCY)],
            cwd=folder,
            check=True,
            capture_output=True,
        )
        return time.monotonic() - started, len(list((folder / "imports").iterdir()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"any of {', '.join(TARGETS)}")
    parser.add_argument("--times", type=int, default=3, help="runs of each (default: %(default)s)")
    options = parser.parse_args()
    if unknown := set(options.targets) - TARGETS.keys():
        parser.error(f"there is no target {', '.join(sorted(unknown))}")
    print("| target | time | imports |\n| --- | ---: | ---: |", flush=True)
    for name in options.targets or TARGETS:
        runs = [measure(name) for _ in range(options.times)]
        seconds, imports = median(run[0] for run in runs), max(run[1] for run in runs)
        print(f"| `{name}` | {seconds:.1f} s | {imports} |", flush=True)


if __name__ == "__main__":
    main()
