"""How often unchanged pull requests are blocked and real regressions missed, measured and printed:
`python benchmarks/regressions.py`.

An agent is simulated whose tests pass at known rates, so that what is true is known. Its pull
requests are decided by the same code as real ones, in this process, thousands of them. Beside each stands what a plain comparison of one run a side says of the same samples, and
Fisher's exact test with Holm's correction on the same fresh samples. The same `--seed` gives the
same table. `regressions_cli.py` has a few dozen of the command line, to check the whole,
`regressions_plots.py` the pictures."""

import argparse
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from random import Random

import simulated_runner
import simulation
from simulation import Conditions, Key, PullRequest, Urn

from agentevals_action.model.result import GateRecord, SampleResult
from agentevals_action.results.summary import interval
from agentevals_action.review.comparison.decision_rule import MIN_HISTORY

HOLDS, SLIPS = SampleResult(score=1.0, verdict="pass"), SampleResult(score=0.0, verdict="fail")
GATE = GateRecord(name="gate", path="suite", line=1)
GATE_FAILS = replace(SLIPS, gates_failed=(GATE.name,))
ALPHA = 0.05
TESTS = 100
GATES = 60
BROKEN: Key = ("suite", "test-0")


@dataclass(frozen=True)
class Scenario:
    """Pull requests of one kind: the tests' true pass rates (0-1, to the percent) on base, and
    `broken`, that of the first one on head, where it is another. `history` samples of base are
    stored; 1 means that base is run again instead. With `gates`, every test is a required gate.
    With a `runner`, a runner of others runs the suite. `wanted` is what is to be reached."""

    name: str
    rates: tuple[float, ...]
    history: int = 20
    broken: float | None = None
    wanted: str = ""
    gates: bool = False
    runner: bool = False

    def urns(self) -> Iterator[Urn]:
        """The tests."""
        for number, rate in enumerate(self.rates):
            after = self.broken if number == 0 and self.broken is not None else rate
            fails = GATE_FAILS if self.gates else SLIPS
            gates = (GATE,) if self.gates else ()
            key = (BROKEN[0], f"test-{number}")
            yield Urn(key, pool(rate, fails), pool(after, fails), gates)


@dataclass(frozen=True)
class Measured:
    """What came of `count` pull requests: how many each way blocked and in how many it found the
    broken test, and how many samples `confirm` took a test."""

    count: int
    blocked: int
    plain: int
    found: int
    plain_found: int
    fisher_found: int
    undecided: int
    extra_head: float
    extra_base: float


def pool(rate: float, fails: SampleResult = SLIPS) -> Sequence[SampleResult]:
    """A hundred samples that hold so often."""
    holding = round(100 * rate)
    return [HOLDS] * holding + [fails] * (100 - holding)


def scenarios() -> Sequence[Scenario]:
    """Those of the table."""
    mixed = ((0.8, 0.9, 0.98) * TESTS)[:TESTS]
    found: list[Scenario] = []
    for history in (20, 5, 1):
        kinds = [
            Scenario("nothing changed, all at 0.8", (0.8,) * TESTS, wanted="blocked ≤ 5 %"),
            Scenario("nothing changed, all at 0.9", (0.9,) * TESTS, wanted="blocked ≤ 5 %"),
            Scenario("nothing changed, all at 0.95", (0.95,) * TESTS, wanted="extra ≤ 20 %"),
            Scenario("nothing changed, all at 0.98", (0.98,) * TESTS, wanted="blocked ≤ 5 %"),
            Scenario("nothing changed, 0.8, 0.9 and 0.98 mixed", mixed, wanted="blocked ≤ 5 %"),
            Scenario(
                "nothing changed, 5 at 0.5, the others at 0.98", (0.5,) * 5 + (0.98,) * (TESTS - 5)
            ),
            Scenario("one broken: 0.95 → 0", (0.95,) * TESTS, broken=0.0, wanted="found ≥ 95 %"),
            Scenario("one worse: 0.95 → 0.3", (0.95,) * TESTS, broken=0.3, wanted="found ≥ 60 %"),
        ]
        found += [
            replace(kind, history=history, wanted=kind.wanted if history == 20 else "")
            for kind in kinds
        ]
    for rate in (0.9, 0.95, 0.98):
        gates = Scenario(f"nothing changed, {GATES} gates at {rate}", (rate,) * GATES, gates=True)
        broken = replace(gates, name=f"one gate broken: {rate} → 0", broken=0.0)
        for history in (20, 1):
            found.append(replace(gates, history=history, wanted="blocked ≤ 5 %"))
            found.append(replace(broken, history=history, wanted="found ≥ 95 %"))
    for gates in (False, True):
        kind = f"{GATES} {'gates' if gates else 'tests'} of a runner at 0.9"
        same = Scenario(f"nothing changed, {kind}", (0.9,) * GATES, gates=gates, runner=True)
        for history in (20, 1):
            # One sample of base can only fall from where it is.
            rate = 0.9 if history == 20 else 1.0
            name = f"{kind}, one broken: {rate:g} → 0"
            rates = (rate, *same.rates[1:])
            broken = replace(same, name=name, rates=rates, broken=0.0, wanted="found ≥ 95 %")
            found.append(replace(same, history=history, wanted="blocked ≤ 5 %"))
            found.append(replace(broken, history=history))
    return found


def measure(scenario: Scenario, count: int, seed: int) -> Measured:
    """Draws so many pull requests and counts."""
    rng = Random(f"{seed} {scenario.name} {scenario.history} {scenario.broken}")
    conditions = Conditions(history=scenario.history, alpha=ALPHA)
    blocked = plain = found = plain_found = fisher_found = undecided = head = base = 0
    decided = simulated_runner if scenario.runner else simulation
    for drawn in decided.pull_requests(tuple(scenario.urns()), conditions, count, rng):
        blocked += bool(drawn.regressed | drawn.gates)
        plain += bool(drawn.plain)
        found += BROKEN in drawn.regressed | drawn.gates
        plain_found += BROKEN in drawn.plain
        has_streams = scenario.broken is not None and not scenario.runner
        fisher_found += has_streams and BROKEN in fisher_with_holm(drawn)
        undecided += sum(
            evidence.finding.value == "inconclusive" for evidence in drawn.evidence.values()
        )
        head += drawn.head_samples
        base += drawn.base_samples
    runs = count * len(scenario.rates)
    return Measured(
        count, blocked, plain, found, plain_found, fisher_found, undecided, head / runs, base / runs
    )


def fisher_with_holm(drawn: PullRequest) -> frozenset[Key]:
    """The suspects that Fisher's exact test (one-sided) of all their fresh samples against base's
    calls worse, with Holm's correction (1979) over all suspects at 5 %. A history under 5 is
    replaced by as many fresh samples of base as confirmation would take."""
    chances = []
    for suspect in drawn.suspects:
        stream = drawn.streams[suspect.key]
        base = suspect.requirement.count(suspect.base.samples)
        base = base if base.trials >= MIN_HISTORY else suspect.requirement.count(stream.base)
        head = suspect.requirement.count(stream.head)
        chances.append(
            (fisher(head.failures, head.trials, base.failures, base.trials), suspect.key)
        )
    worse = []
    for place, (chance, key) in enumerate(sorted(chances)):
        if chance > ALPHA / (len(chances) - place):
            break
        worse.append(key)
    return frozenset(worse)


def fisher(failures: int, trials: int, base_failures: int, base_trials: int) -> float:
    """The chance (0-1) of at least so many of all failures on head if they fell anywhere: the
    hypergeometric tail."""
    every, all_failures = trials + base_trials, failures + base_failures
    ways = (
        math.comb(all_failures, count) * math.comb(every - all_failures, trials - count)
        for count in range(failures, trials + 1)
    )
    return sum(ways) / math.comb(every, trials)


def all_measured(wanted: Sequence[Scenario], count: int, seed: int) -> Sequence[Measured]:
    """Each scenario, on all processors."""
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        return list(workers.map(partial(measure, count=count, seed=seed), wanted))


def table(wanted: Sequence[Scenario], measured: Sequence[Measured]) -> str:
    """Markdown: rates with their 95 % intervals (Wilson)."""
    titles = (
        "pull requests of 100 tests",
        "history",
        "one run blocks",
        "blocked",
        "one run finds",
        "Fisher and Holm find",
        "found",
    )
    lines = [
        f"| {' | '.join(titles)} | extra | wanted |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for scenario, row in zip(wanted, measured, strict=True):
        broken = scenario.broken is not None
        finds = [
            share(count, row.count) if broken else "–"
            for count in (row.plain_found, row.fisher_found)
        ]
        if scenario.runner:  # it draws only what confirmation asks for
            finds[1] = "–"
        found = with_interval(row.found, row.count) if broken else "–"
        extra = f"{row.extra_head:.0%}" + (
            f" + {row.extra_base:.0%} of base" if row.extra_base else ""
        )
        cells = [
            scenario.name,
            "1, run again" if scenario.history == 1 else str(scenario.history),
            share(row.plain, row.count),
        ]
        cells += [with_interval(row.blocked, row.count), *finds, found, extra, scenario.wanted]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def share(count: int, trials: int) -> str:
    return f"{count / trials:.1%}"


def with_interval(count: int, trials: int) -> str:
    low, high = interval(count, trials)
    return f"{count / trials:.1%} ({low:.1%}–{high:.1%})"


def read_options(description: str | None, pull_requests: int) -> argparse.Namespace:
    """The options of the command line, with the default number of pull requests of each kind."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--pull-requests",
        type=int,
        default=pull_requests,
        help="how many of each kind (default: %(default)s)",
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="the same gives the same (default: %(default)s)"
    )
    return parser.parse_args()


def main() -> None:
    options, wanted = read_options(__doc__, 1000), scenarios()
    print(table(wanted, all_measured(wanted, options.pull_requests, options.seed)))


if __name__ == "__main__":
    main()
