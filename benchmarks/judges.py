"""How often the bounds of a calibration hold, and how many labels a floor needs, measured and
printed: `python benchmarks/judges.py`. Needs the extra `judges`.

A simulated judge has a known sensitivity and specificity. People label half of the tests' answers
`pass` and half `fail`. With several answers to a test, the judge's rate differs from test to test
(a beta distribution), so that its verdicts on the answers to one test are alike: `ALIKE` is their
correlation. The figures come from the code of `judge calibrate`. The same `--seed` gives the same
tables."""

import argparse
from collections.abc import Sequence
from itertools import count as counting
from random import Random

from agentevals_action.judges.calibrate import JudgedAnswer, Opinion
from agentevals_action.judges.statistics import lower_bound, measure
from agentevals_action.model.judge import Label

#: Sensitivity and specificity of the simulated judges.
JUDGES = ((0.9, 0.8), (0.95, 0.95), (0.8, 0.6))
#: Tests, and labelled answers to each.
SIZES = ((20, 1), (40, 1), (80, 1), (20, 3), (40, 3))
ALIKE = 0.5
METRICS = ("sensitivity", "specificity", "agreement", "kappa")
FLOORS = (0.6, 0.7, 0.8, 0.9)
#: Wrong verdicts among the labels of the class.
WRONG = (0, 1, 2, 3)
#: Labels of the class, and the true rates of judges.
LABELS = (9, 15, 20, 30, 40, 60)
RATES = (0.8, 0.9, 0.95, 1.0)


def draw(size: tuple[int, int], judge: tuple[float, float], rng: Random) -> Sequence[JudgedAnswer]:
    """The judged answers of one simulated calibration."""
    tests, answers = size
    drawn = []
    for number in range(tests):
        people = number % 2 == 0
        rate = judge[not people]
        if answers > 1:
            spread = (1 - ALIKE) / ALIKE
            rate = rng.betavariate(rate * spread, (1 - rate) * spread)
        for answer in range(answers):
            is_right = rng.random() < rate
            verdict = "pass" if people else "fail"
            label = Label(test=str(number), answer=str(answer), label=verdict, who="people")
            drawn.append(JudgedAnswer(label, (Opinion(people is is_right),)))
    return drawn


def truth(judge: tuple[float, float]) -> dict[str, float]:
    """The true values of the metrics, of labels half of which are `pass`."""
    sensitivity, specificity = judge
    agreement = (sensitivity + specificity) / 2  # by chance, it is a half
    values = (sensitivity, specificity, agreement, 2 * agreement - 1)
    return dict(zip(METRICS, values, strict=True))


def coverage(
    size: tuple[int, int], judge: tuple[float, float], count: int, rng: Random, resamples: int
) -> dict[str, float]:
    """The share of calibrations in which the bound of each metric holds; `naive` is that of the
    specificity as if the answers to one test were not alike."""
    true, held = truth(judge), dict.fromkeys((*METRICS, "naive"), 0)
    for _ in range(count):
        drawn = draw(size, judge, rng)
        found = measure(drawn, resamples)
        for name in METRICS:
            held[name] += getattr(found, name).low <= true[name]
        fails = [(float(not each.differing), 1.0) for each in drawn if not each.label.passes]
        held["naive"] += lower_bound(fails) <= true["specificity"]
    return {name: number / count for name, number in held.items()}


def least_labels(floor: float, wrong: int) -> int:
    """The labels of a class, one of each test, with which a judge that is wrong so often reaches a
    floor."""
    return next(
        number
        for number in counting(wrong + 1)
        if lower_bound([(1.0, 1.0)] * (number - wrong) + [(0.0, 1.0)] * wrong) >= floor
    )


def reaching(labels: int, rate: float, floor: float, count: int, rng: Random) -> float:
    """The share of calibrations in which a judge with this rate reaches a floor with so many labels
    of the class."""
    bounds = [
        lower_bound([(1.0, 1.0)] * n + [(0.0, 1.0)] * (labels - n)) for n in range(labels + 1)
    ]
    rights = (sum(rng.random() < rate for _ in range(labels)) for _ in range(count))
    return sum(bounds[right] >= floor for right in rights) / count


def tables(count: int, seed: int, resamples: int) -> Sequence[str]:
    """The lines of the Markdown tables."""
    lines = [
        f"| tests × answers | sensitivity, specificity | {' | '.join(METRICS)} | specificity, naive |",
        f"|---|---|{'--:|' * (len(METRICS) + 1)}",
    ]
    for size in SIZES:
        for judge in JUDGES:
            shares = coverage(size, judge, count, Random(seed), resamples)
            figures = " | ".join(f"{share:.3f}" for share in shares.values())
            lines.append(f"| {size[0]} × {size[1]} | {judge[0]}, {judge[1]} | {figures} |")
    lines += ["", f"| floor | {' | '.join(f'{wrong} wrong' for wrong in WRONG)} |"]
    lines.append(f"|--:|{'--:|' * len(WRONG)}")
    for floor in FLOORS:
        needed = " | ".join(str(least_labels(floor, wrong)) for wrong in WRONG)
        lines.append(f"| {floor} | {needed} |")
    lines += ["", f"| floor 0.7, true rate | {' | '.join(f'{n} labels' for n in LABELS)} |"]
    lines.append(f"|--:|{'--:|' * len(LABELS)}")
    for rate in RATES:
        rng = Random(seed)
        shares = [reaching(labels, rate, 0.7, 10 * count, rng) for labels in LABELS]
        lines.append(f"| {rate} | {' | '.join(f'{share:.2f}' for share in shares)} |")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="calibrations of each row")
    parser.add_argument("--resamples", type=int, default=200, help="of each interval of kappa")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("\n".join(tables(options.count, options.seed, options.resamples)))
