"""Judges that are measured: labels that people give to answers, the results of a calibration, and
the rule by which judges decide: their calibration reaches a floor. Pure."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, Field, Strict, model_validator

from agentevals_action.escaping import plain
from agentevals_action.formatting import counted, join_choices, joined, percent
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.result import PASS_SCORE, EvaluatorResult, JudgeRecord
from agentevals_action.validation.file_model import Computed, FileModel, ListOf, NonEmpty

#: `who` of a label that no person gave.
MODEL = "model"

#: The file of the calibration, in the working directory.
CALIBRATION_FILE = "calibration.json"

#: The digest of a way of judging, see `TestsDescription.judge_key`.
JudgeKey = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
#: What a calibration measures, and a floor names.
Metric = Literal["agreement", "sensitivity", "specificity", "kappa"]
_Count = Annotated[int, Field(ge=0)]


def _read_who(who: str) -> str:
    who = who.strip()
    if not who:
        raise ValueError("it is empty; write the name of the person")
    return MODEL if who.casefold() == MODEL else who


def is_label_file(path: str) -> bool:
    """Whether a path is that of a file of labels: a list, or a JSON object in each row."""
    return path.endswith((".labels.yaml", ".labels.yml", ".labels.jsonl"))


class Label(FileModel):
    """A person's verdict on one answer to a test: an entry of a label file.

    The answer is a text (`answer`), or the `digest` of an answer in results
    (`judges.labels.answer_digest`). With `other`, a second text, `pass` means that `answer` is
    better. `question` is the digest of the question (`judges.labels.question_digest`). A label that
    was read has its `suite`, its `digest`, and the path of its judge in results (`evaluator`)."""

    noun = "label"

    suite: NonEmpty = ""
    test: NonEmpty
    answer: str | None = None
    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] = ""
    other: str | None = None
    question: Annotated[str, Field(pattern="^[0-9a-f]{16}$")] = ""
    evaluator: NonEmpty = ""
    criterion: NonEmpty = ""
    label: Literal["pass", "fail"] | Annotated[float, Field(ge=0, le=1)]
    who: Annotated[NonEmpty, AfterValidator(_read_who)]
    note: str | None = None

    location: Computed[Location] = Location("")
    places: Computed[Mapping[str, Location]] = Field(default={})

    @model_validator(mode="after")
    def _has_one_answer(self) -> Self:
        if (self.answer is None) == (not self.digest):
            problem = "it has not one of `answer` and `digest`"
            raise ValueError(
                f"{problem}; write the text of the answer, or the digest of a stored one"
            )
        if self.other is not None and self.answer is None:
            raise ValueError("it has `other` and no `answer`; write the texts of both answers")
        if self.other is not None and self.other == self.answer:
            problem = "`other` is the same text as `answer`, and neither is better"
            raise ValueError(f"{problem}; remove it")
        return self

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What the label is about: suite, test, answer, judge, criterion."""
        return self.suite, self.test, self.digest, self.evaluator, self.criterion

    @property
    def passes(self) -> bool:
        """Whether the answer is good: `pass`, or a score of 0.8 or more."""
        return self.label == "pass" if isinstance(self.label, str) else self.label >= PASS_SCORE


@dataclass(frozen=True)
class Labels:
    """The `valid` labels of people beside suites, in the order of their files, the errors of other
    labels, and warnings about labels of models or of an earlier question."""

    valid: tuple[Label, ...] = ()
    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()

    @cached_property
    def _by_key(self) -> Mapping[tuple[str, ...], Sequence[Label]]:
        by_key: dict[tuple[str, ...], list[Label]] = {}
        for label in self.valid:
            by_key.setdefault(label.key, []).append(label)
        return by_key

    @property
    def counted(self) -> tuple[Label, ...]:
        """One label for each answer that people agree about."""
        return tuple(labels[0] for labels in self._by_key.values() if not _differ(labels))

    @property
    def conflicts(self) -> tuple[Sequence[Label], ...]:
        """The labels of each answer that some people pass and others fail: they do not count."""
        return tuple(labels for labels in self._by_key.values() if _differ(labels))


def _differ(labels: Sequence[Label]) -> bool:
    return len({label.passes for label in labels}) > 1


class Estimate(FileModel):
    """An estimate: its `value`, and the one-sided lower 95 % bound `low`; -1 to 1."""

    value: float = Field(ge=-1, le=1)
    low: float = Field(ge=-1, le=1)


class Agreement(FileModel):
    """How a judge agrees with people. `passes` and `fails` are the numbers of labels with a known
    verdict of the judge, `tests` is the number of tests that they are about. `agreement` is the
    share of equal verdicts, `sensitivity` the share of people's passes that the judge passes,
    `specificity` the share of people's fails that the judge fails, `kappa` Cohen's: the agreement
    beyond chance. What labels of one class alone cannot show is None. `kappa_interval` is the
    two-sided 95 % interval, for readers."""

    noun = "agreement"

    passes: _Count
    fails: _Count
    tests: _Count
    agreement: Estimate | None
    sensitivity: Estimate | None
    specificity: Estimate | None
    kappa: Estimate | None
    kappa_interval: ListOf[float] = ()


class JudgeCalibration(Agreement):
    """How one judge agrees with people, also about each of the `criteria` of a rubric that has
    labels. The calibration holds for the `models` that the replies named. `type`, `evaluators`
    (their names) and `target` are for readers. `unstable` is the share of answers about which the
    judge disagrees with itself, None if it was asked once. `length` is the share of a pairwise
    judge's right verdicts that stay right with filler behind the worse answer, None for another
    judge, or without a right verdict."""

    noun = "judge"

    models: Annotated[ListOf[NonEmpty], Field(min_length=1)]
    type: NonEmpty
    evaluators: ListOf[NonEmpty]
    target: NonEmpty
    unstable: Annotated[float, Field(ge=0, le=1)] | None
    length: Estimate | None = Field(default=None, exclude_if=lambda length: length is None)
    criteria: Mapping[NonEmpty, Agreement] = Field(default={})


class Calibration(FileModel):
    """The content of `calibration.json`: what `judge calibrate` measured on a day (UTC), asking
    each judge `samples` times about each labelled answer. `judges` are by `JudgeKey`."""

    noun = "calibration"

    version: Literal[1] = 1
    day: Annotated[date, Strict(False)]
    samples: Annotated[int, Field(ge=1)]
    judges: Mapping[JudgeKey, JudgeCalibration]


#: What follows after `label` in the advice, for a metric over the labels of one class.
_CLASSES = {"sensitivity": "passing ", "specificity": "failing "}
#: Labels up to which the number of missing labels is computed.
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
    metric = next((metric for metric in metrics if metric == name.strip()), None)
    least = float(number) if re.fullmatch(r"\s*(0|0?\.[0-9]{1,9})\s*", number) else 0.0
    if metric is None or not least:
        raise ValueError(
            f"write `metric:number`, as `specificity:0.7`: {join_choices(metrics)}, and a number "
            "over 0 and under 1"
        )
    return Floor(metric, least)


#: What a judge of pairs needs to decide, besides the floor: it is right more often than not.
_OF_PAIRS = Floor("agreement", 0.5)
#: The share of a pairwise judge's right verdicts that filler may turn, at most (95 % confidence).
_MOST_TURNED = 0.2


@dataclass(frozen=True)
class JudgeRule:
    """Which judges decide: without a `floor` all judges, else judges whose `calibration` reaches
    each condition of the floor. `problem` states why there is no calibration. With `pairs`, judges
    of pairs can block, and have conditions of their own."""

    floor: tuple[Floor, ...] = ()
    calibration: Calibration | None = None
    problem: str = ""
    pairs: bool = False

    def why_advisory(self, judge: JudgeRecord) -> str:
        """Why results of a judge decide nothing, and what to do; empty if they decide. A judge that
        could not be asked names no model, so that its models are not compared."""
        return self._why_under(judge, self.floor)

    def why_pairs_advisory(self, judge: JudgeRecord) -> str:
        """Why results of a judge of pairs decide nothing, and what to do; empty if they decide."""
        floor = (*self.floor, _OF_PAIRS) if self.pairs else self.floor
        if why := self._why_under(judge, floor):
            return why
        if not self.pairs or self.calibration is None:
            return ""
        return _why_turned(self.calibration.judges[judge.key])

    def _why_under(self, judge: JudgeRecord, floor: Sequence[Floor]) -> str:
        if not floor:
            return ""
        if self.calibration is None:
            return self.problem or f"there is no `{CALIBRATION_FILE}`; {CALIBRATION_ADVICE}"
        measured = self.calibration.judges.get(judge.key)
        if measured is None:
            problem = "it is not calibrated with its present prompt, parameters and target"
            return f"{problem}; run {_CALIBRATE}"
        if others := [model for model in judge.models if model not in measured.models]:
            judging, known = (joined([*map(_name, names)]) for names in (others, measured.models))
            return f"{judging} judged, and {known} was calibrated; run {_CALIBRATE}"
        return next(
            filter(None, (_why_not_reached(measured, condition) for condition in floor)), ""
        )

    def stand_again(self, result: EvaluatorResult) -> EvaluatorResult | None:
        """A stored result, advisory or not by this rule. None for a composite in which other
        children decide now: its rule for the children's scores is not stored."""
        if result.judge:
            return replace(result, advisory=self.why_advisory(result.judge))
        children = tuple(
            inner
            for child in result.evaluator_results
            if (inner := self.stand_again(child)) and bool(inner.advisory) == bool(child.advisory)
        )
        if len(children) < len(result.evaluator_results):
            return None
        reasons = (child.advisory for child in children if child.advisory)
        reason = next(reasons, "") if result.advisory else ""
        return replace(result, evaluator_results=children, advisory=reason)


#: The rule without a floor.
ALL_DECIDE = JudgeRule()


def _why_turned(measured: JudgeCalibration) -> str:
    """Why filler may turn too many verdicts of a judge of pairs, and what to do; empty if not."""
    if measured.length is None:
        return f"it is not known whether filler turns its verdicts; run {_CALIBRATE}"
    if measured.length.low >= 1 - _MOST_TURNED:
        return ""
    turned = f"up to {math.ceil(100 - 100 * measured.length.low)}% of its verdicts (95 %)"
    advice = "label more pairs, or correct its prompt"
    return f"filler turns {turned}, over the limit of {percent(_MOST_TURNED)}; {advice}"


def _why_not_reached(measured: JudgeCalibration, condition: Floor) -> str:
    """Why a judge does not reach a condition, and what to do; empty if it does."""
    metric, least = condition.metric, condition.least
    estimate: Estimate | None = getattr(measured, metric)
    of_pairs = measured.type == "pairwise"
    noun, how = ("pair", "in `*.labels.yaml`") if of_pairs else ("answer", f"with {_LABEL}")
    if estimate is None:
        label = f"label {_CLASSES.get(metric, '')}{noun}s {how}"
        return f"its {metric} is not known from so few labels; {label}"
    if estimate.low >= least:
        return ""
    low = math.floor(100 * estimate.low) / 100  # as shown, it is under the floor, too
    problem = f"its {metric} is at least {low:.2f} (95 %), under the floor of {least:g}"
    if estimate.value <= least:
        return f"{problem}; correct its prompt by its mistakes, which {_CALIBRATE} shows"
    labels = {"sensitivity": measured.passes, "specificity": measured.fails}
    more = more_labels(estimate.value, labels.get(metric, measured.passes + measured.fails), least)
    kind = f"more {_CLASSES.get(metric, '')}{noun}"
    is_known = more is not None and metric != "kappa"
    number = counted(max(more or 0, 1), kind) if is_known else f"{kind}s"
    return f"{problem}; label {number} {how}"


def more_labels(share: float, labels: int, least: float) -> int | None:
    """The number of further labels, if all agree with the judge, that raise the bound of Clopper
    and Pearson (one-sided, 95 %) of a `share` of `labels` to `least`; None if it is very large."""
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
