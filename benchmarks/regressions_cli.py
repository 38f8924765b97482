"""`regressions.py` with repositories, the command line, and `cli` targets that draw by a seed:
`python benchmarks/regressions_cli.py`."""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from regressions import read_options, with_interval

from agentevals_action.model.result import TestResult
from agentevals_action.results.build import extended
from agentevals_action.results.jsonl import read_results
from agentevals_action.review.comparison.decision_rule import find_lost_requirement

TESTS = 30
BROKEN = "test-0"
#: Draws by side, test and sample alone, so that the same seed gives the same answers in whatever
#: order they are asked for.
AGENT = """\
import json, pathlib, random, sys
side = json.loads(pathlib.Path(__file__).with_name("side.json").read_text())
test, sample = sys.argv[1:]
print("hello" if random.Random(f"{side['seed']} {test} {sample}").random() < side["rates"][test] else "goodbye")
"""
EXIT_CODES = {0: "passed", 1: "failed"}


@dataclass(frozen=True)
class Kind:
    """Pull requests whose tests all hold at `rate` on base, and on head too but for the first one,
    where `broken` is another rate."""

    name: str
    rate: float
    broken: float | None = None


@dataclass(frozen=True)
class Seen:
    """What one review came to: whether it blocked, whether it named the first test, whether one run
    a side would have blocked, and how many samples confirmation took."""

    blocked: bool
    found: bool
    plain: bool
    extra: int


KINDS = (
    Kind("nothing changed, all at 0.8", 0.8),
    Kind("nothing changed, all at 0.95", 0.95),
    Kind("one broken: 0.95 → 0", 0.95, 0.0),
    Kind("one worse: 0.95 → 0.3", 0.95, 0.3),
)


def table(count: int, seed: int) -> str:
    """Markdown: each kind that often, base run again in each."""
    lines = [
        f"| {count} pull requests of {TESTS} tests | one run blocks | blocked | found | extra |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for kind in KINDS:
        with tempfile.TemporaryDirectory(prefix="agentevals-regressions-") as temp:
            seen = [
                review(Path(temp) / str(number), kind, f"{seed} {kind.name} {number}")
                for number in range(count)
            ]
        found = (
            with_interval(sum(row.found for row in seen), count) if kind.broken is not None else "–"
        )
        blocked = [
            with_interval(sum(values), count)
            for values in ([row.plain for row in seen], [row.blocked for row in seen])
        ]
        extra = sum(row.extra for row in seen) / (count * TESTS)
        lines.append(f"| {kind.name} | {' | '.join(blocked)} | {found} | {extra:.0%} |")
        print(f"done: {kind.name}", file=sys.stderr, flush=True)
    return "\n".join(lines)


def review(folder: Path, kind: Kind, seed: str) -> Seen:
    """One pull request by `agentevals-action review`; RuntimeError if it could not be compared."""
    rates = {f"test-{number}": kind.rate for number in range(TESTS)}
    write_base(folder, rates, seed)
    if kind.broken is not None:
        rates[BROKEN] = kind.broken
    git(folder, "checkout", "--quiet", "-b", "change")
    write_side(folder, rates, f"{seed} head")
    git(folder, "commit", "--quiet", "--all", "--message", "head")
    command = [
        sys.executable,
        "-m",
        "agentevals_action",
        "review",
        "--base",
        "main",
        "--select",
        "all",
        "--baseline",
        "rerun",
    ]
    done = subprocess.run(
        [*command, "--fail-on", "regressions"], cwd=folder, capture_output=True, text=True
    )
    if done.returncode not in EXIT_CODES:
        raise RuntimeError(f"the review ended with exit code {done.returncode}: {done.stderr}")
    heads, bases = (
        read(folder / "agentevals-report" / name) for name in ("results.jsonl", "base.jsonl")
    )
    summary = json.loads((folder / "agentevals-report/summary.json").read_text(encoding="utf-8"))
    regressed = {
        test["id"]
        for suite in summary["suites"]
        for test in suite["tests"]
        if test["change"] == "regressed"
    }
    plain = any(find_lost_requirement(first(heads[name]), first(bases[name])) for name in heads)
    extra = sum(len(result.fresh_samples) for side in (heads, bases) for result in side.values())
    return Seen(done.returncode == 1, BROKEN in regressed, plain, extra)


def write_base(folder: Path, rates: dict[str, float], seed: str) -> None:
    """A repository whose `main` is the base."""
    (folder / ".agentv").mkdir(parents=True)
    tests = [
        {"id": name, "input": name, "assert": [{"type": "contains", "value": "hello"}]}
        for name in rates
    ]
    # JSON is YAML, and is written without a library.
    (folder / "EVAL.yaml").write_text(
        json.dumps({"name": "simulated", "tests": tests}), encoding="utf-8"
    )
    agent = {
        "name": "default",
        "provider": "cli",
        "command": [sys.executable, "-I", "-S", "agent.py", "{EVAL_ID}", "{ATTEMPT}"],
    }
    (folder / ".agentv/targets.yaml").write_text(json.dumps({"targets": [agent]}), encoding="utf-8")
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")
    (folder / ".gitignore").write_text("/agentevals-report/\n", encoding="utf-8")
    write_side(folder, rates, f"{seed} base")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "base")


def write_side(folder: Path, rates: dict[str, float], seed: str) -> None:
    (folder / "side.json").write_text(json.dumps({"seed": seed, "rates": rates}), encoding="utf-8")


def git(folder: Path, *arguments: str) -> None:
    who = (
        "-c",
        "user.name=benchmark",
        "-c",
        "user.email=benchmark@example.invalid",
        "-c",
        "commit.gpgsign=false",
    )
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def read(path: Path) -> dict[str, TestResult]:
    return {result.eval_id: result for result in read_results(path)}


def first(result: TestResult) -> TestResult:
    """The result as it was before confirmation: that of its first sample alone."""
    return extended(replace(result, samples=()), result.samples[:1])


if __name__ == "__main__":
    given = read_options(__doc__, 30)
    print(table(given.pull_requests, given.seed))
