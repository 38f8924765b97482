"""Which judges decide: those whose calibration reaches a floor. Pure."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

from agentevals_action.escaping import plain
from agentevals_action.formatting import counted, join_choices, joined, percent
from agentevals_action.model.judge import (
    CALIBRATION_FILE,
    Calibration,
    Estimate,
    JudgeCalibration,
    Metric,
)
from agentevals_action.model.result import EvaluatorResult, JudgeRecord

#: What follows after `label`, of a metric over the labels of one class.
_CLASSES = {"sensitivity": "passing ", "specificity": "failing "}
#: Labels up to which it is computed how many more a floor needs.
_MOST_LABELS = 1_000
#: The probability that a one-sided 95 % bound does not hold.
_ERROR = 0.05
#: Characters of the name of a model.
_NAME = 80
_CALIBRATE = "`agentevals-action judge calibrate`"
_LABEL = "`agentevals-action judge label`"
#: What to do if nothing is calibrated.
CALIBRATION_ADVICE = f"label answers with {_LABEL}, then run {_CALIBRATE}"


@dataclass(frozen=True)
class Floor:
    """A condition: the one-sided lower 95 % bound of a judge's `metric` is at least `least`, over 0
    and under 1."""

    metric: Metric
    least: float

    def __str__(self) -> str:
        return f"{self.metric}:{self.least:g}"


def read_floor(text: str) -> Floor:
    """The condition in a text such as `specificity:0.7`. ValueError with what to write."""
    metrics: tuple[Metric, ...] = get_args(Metric)
    name, _, number = text.partition(":")
    metric = next((known for known in metrics if known == name.strip()), None)
    least = float(number) if re.fullmatch(r"\s*(0|0?\.[0-9]{1,9})\s*", number) else 0.0
    if metric is None or not least:
        raise ValueError(
            f"write `metric:number`, as `specificity:0.7`: {join_choices(metrics)}, and a number "
            "over 0 and under 1"
        )
    return Floor(metric, least)


#: What a judge of pairs needs to decide, beside the floor: it is right more often than not.
_OF_PAIRS = Floor("agreement", 0.5)
#: The share of its right verdicts that filler may turn, at most, with a confidence of 95 %.
_MOST_TURNED = 0.2


@dataclass(frozen=True)
class JudgeRule:
    """Which judges decide: without a `floor` all, else those whose `calibration` reaches each of
    its conditions. `problem` states why there is no calibration. With `pairs`, judges of pairs
    decide, and have conditions of their own."""

    floor: tuple[Floor, ...] = ()
    calibration: Calibration | None = None
    problem: str = ""
    pairs: bool = False

    def why_advisory(self, judge: JudgeRecord) -> str:
        """Why results of a judge decide nothing, and what to do; empty if they decide. One that
        could not be asked named no model: its calibration holds as far as it is known."""
        return self._why_under(judge, self.floor)

    def why_pairs_advisory(self, judge: JudgeRecord) -> str:
        """The same of a judge of pairs."""
        floor = (*self.floor, _OF_PAIRS) if self.pairs else self.floor
        if why := self._why_under(judge, floor):
            return why
        found = self.calibration.judges[judge.key] if self.pairs and self.calibration else None
        return _why_turned(found) if found else ""

    def _why_under(self, judge: JudgeRecord, floor: Sequence[Floor]) -> str:
        if not floor:
            return ""
        if self.calibration is None:
            return self.problem or f"there is no `{CALIBRATION_FILE}`; {CALIBRATION_ADVICE}"
        found = self.calibration.judges.get(judge.key)
        if found is None:
            problem = "it is not calibrated with its present prompt, parameters and target"
            return f"{problem}; run {_CALIBRATE}"
        if others := [model for model in judge.models if model not in found.models]:
            now, then = (joined([_name(model) for model in own]) for own in (others, found.models))
            return f"{now} judged, and {then} was calibrated; run {_CALIBRATE}"
        return next(filter(None, (_why_under(found, each) for each in floor)), "")

    def stand_again(self, result: EvaluatorResult) -> EvaluatorResult | None:
        """A stored result by this rule. None for a composite in which other children decide now:
        its rule for their scores is not stored."""
        if result.judge:
            return replace(result, advisory=self.why_advisory(result.judge))
        children = tuple(
            now
            for child in result.evaluator_results
            if (now := self.stand_again(child)) and bool(now.advisory) == bool(child.advisory)
        )
        if len(children) < len(result.evaluator_results):
            return None
        reasons = (child.advisory for child in children if child.advisory)
        reason = next(reasons, "") if result.advisory else ""
        return replace(result, evaluator_results=children, advisory=reason)


#: Without a floor.
ALL_DECIDE = JudgeRule()


def _why_turned(found: JudgeCalibration) -> str:
    """Why filler may turn too many verdicts of a judge of pairs, and what to do; empty if not."""
    if found.length is None:
        return f"it is not known whether filler turns its verdicts; run {_CALIBRATE}"
    if found.length.low >= 1 - _MOST_TURNED:
        return ""
    turned = f"up to {math.ceil(100 - 100 * found.length.low)}% of its verdicts (95 %)"
    advice = "label more pairs, or correct its prompt"
    return f"filler turns {turned}, over the limit of {percent(_MOST_TURNED)}; {advice}"


def _why_under(found: JudgeCalibration, condition: Floor) -> str:
    """Why a judge does not reach a condition, and what to do; empty if it does."""
    metric, least = condition.metric, condition.least
    estimate: Estimate | None = getattr(found, metric)
    of_pairs = found.type == "pairwise"
    noun, how = ("pair", "in `*.labels.yaml`") if of_pairs else ("answer", f"with {_LABEL}")
    things = f"{noun}s"
    if estimate is None:
        label = f"label {_CLASSES.get(metric, '')}{things} {how}"
        return f"its {metric} is not known from so few labels; {label}"
    if estimate.low >= least:
        return ""
    low = math.floor(100 * estimate.low) / 100  # as shown, it is under the floor, too
    problem = f"its {metric} is at least {low:.2f} (95 %), under the floor of {least:g}"
    if estimate.value <= least:
        return f"{problem}; correct its prompt by its mistakes, which {_CALIBRATE} shows"
    labels = {"sensitivity": found.passes, "specificity": found.fails}
    more = more_labels(estimate.value, labels.get(metric, found.passes + found.fails), least)
    kind = f"more {_CLASSES.get(metric, '')}{noun}"
    is_known = more is not None and metric != "kappa"
    number = counted(max(more or 0, 1), kind) if is_known else f"{kind}s"
    return f"{problem}; label {number} {how}"


def more_labels(share: float, labels: int, least: float) -> int | None:
    """How many more labels that all agree with the judge bring the bound of Clopper and Pearson
    (one-sided, 95 %) of a `share` to `least`; None if these are very many."""
    wrong = round((1 - share) * labels)
    for total in range(labels, _MOST_LABELS):
        # The bound is the rate at which so few mistakes have a probability of 5 %.
        terms = (
            math.comb(total, count) * (1 - least) ** count * least ** (total - count)
            for count in range(wrong + 1)
        )
        if math.fsum(terms) <= _ERROR:
            return total - labels
    return None


def _name(model: str) -> str:
    return f"`{plain(model, _NAME).replace('`', '')}`"
