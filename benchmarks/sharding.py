"""How well a plan uses many machines: `python benchmarks/sharding.py` (some seconds), and with
`--real` a run on 8 shards of this machine, one after another and all at once (some minutes).

50,000 tests of skewed durations are assigned to 1 to 256 shards. No plan is shorter than the longest
item, nor than the total divided by the number of shards: the table shows how far the plan is from
that bound."""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from agentevals_action.review.sharding.assignment import Item, distribute

TESTS = 50_000
SHARDS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
#: Seconds of a test, drawn from a source of random numbers.
DISTRIBUTIONS = {
    "uniform": lambda source: source.uniform(2.0, 4.0),
    "log-normal": lambda source: source.lognormvariate(1.0, 1.2),
    "Pareto": lambda source: source.paretovariate(1.5),
    "one in a thousand is 500 times longer": lambda source: (
        500.0 if source.random() < 0.001 else 1.0
    ),
}
REAL_TESTS, REAL_SHARDS, REAL_SECONDS = 64, 8, 0.5
SUITE = "name: real\ntests:\n" + "".join(
    f"  - {{id: t{number}, input: hello, criteria: c, assert: [{{type: contains, value: hello}}]}}\n"
    for number in range(REAL_TESTS)
)
TARGETS = (
    "targets:\n  - {name: default, provider: mock, "
    f"delay_ms: {REAL_SECONDS * 1000:.0f}, "
    "responses: [{pattern: '.*', response: hello}]}\n"
)


def simulate() -> float:
    """Prints the table; the largest excess over the bound, as a ratio."""
    worst = 1.0
    print(f"{TESTS:,} tests; time of the slowest shard divided by the bound\n")
    print("| durations |" + "".join(f" {number} |" for number in SHARDS))
    print("|---|" + "---:|" * len(SHARDS))
    for name, draw in DISTRIBUTIONS.items():
        source = random.Random(7)
        seconds = [draw(source) for _ in range(TESTS)]
        items = [Item((("s", str(n)),), one, one, "") for n, one in enumerate(seconds)]
        ratios = []
        for number in SHARDS:
            shards = distribute(items, number)
            slowest = max(sum(item.seconds for item in shard) for shard in shards)
            ratios.append(slowest / max(*seconds, sum(seconds) / number))
        worst = max(worst, *ratios)
        print(f"| {name} |" + "".join(f" {ratio:.3f} |" for ratio in ratios))
    print(f"\nworst: {(worst - 1) * 100:.1f} % above the bound")
    return worst


def run(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Starts a command; its review of the repository needs no host."""
    command = [sys.executable, "-m", "agentevals_action", *arguments]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str], codes: Sequence[int] = (0,)) -> str:
    """The output of a command; CalledProcessError for another exit code."""
    out, err = process.communicate()
    if process.returncode not in codes:
        raise subprocess.CalledProcessError(process.returncode, process.args, out, err)
    return out


def run_real() -> None:
    """Prints how long a review takes on one machine and on 8 shards of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / ".agentv").mkdir()
        (folder / ".agentv/targets.yaml").write_text(TARGETS, encoding="utf-8")
        (folder / "EVAL.yaml").write_text(SUITE, encoding="utf-8")
        (folder / ".gitignore").write_text("/agentevals-report/\n", encoding="utf-8")
        identity = {
            f"GIT_{one}_{two}": "bench"
            for one in ("AUTHOR", "COMMITTER")
            for two in ("NAME", "EMAIL")
        }
        for arguments in (
            ("init", "--quiet", "--initial-branch=main"),
            ("add", "--all"),
            ("commit", "--quiet", "--message=base"),
            ("checkout", "--quiet", "-b", "change"),
            ("commit", "--quiet", "--allow-empty", "--message=change"),
        ):
            subprocess.run(
                ["git", *arguments], cwd=folder, check=True, env={**os.environ, **identity}
            )
        common = ("--base", "main", "--select", "all", "--max-concurrency", "1")
        started = time.perf_counter()
        finish(run(folder, "review", *common))
        alone = time.perf_counter() - started
        plan = ("shards", *common, "--max", str(REAL_SHARDS), "--target-seconds", "1")
        shards = json.loads(finish(run(folder, *plan)))["shard"]
        started = time.perf_counter()
        jobs = [run(folder, "review", *common, "--shard", shard) for shard in shards]
        for job in jobs:
            finish(job)
        sharded = time.perf_counter() - started
        started = time.perf_counter()
        summary = json.loads(finish(run(folder, "merge", *common, "--json")))
        merged = time.perf_counter() - started
    print(
        f"\n{REAL_TESTS} tests of {REAL_SECONDS} s on head and base, one at a time: {alone:.1f} s on "
        f"one machine; {len(shards)} shards at once on the same machine {sharded:.1f} s, and "
        f"{merged:.1f} s for the merge ({summary['outcome']})"
    )


def main() -> None:
    """Prints the tables; exit code 1 if a plan is more than a tenth above the bound."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--real", action="store_true", help="also run 8 shards on this machine")
    arguments = parser.parse_args()
    worst = simulate()
    if arguments.real:
        run_real()
    sys.exit(worst > 1.1)


if __name__ == "__main__":
    main()
