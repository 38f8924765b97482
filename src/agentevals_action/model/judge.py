"""Judges that are measured: labels that people give to answers, and what a calibration found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, Strict, model_validator

from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.result import PASS_SCORE
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

    The answer is its text, or the `digest` of one in results (`judges.labels.answer_digest`). With
    `other`, a second text, `pass` says that `answer` is the better one. `question` is that of the
    question (`judges.labels.question_digest`). One that is read has its `suite`, its `digest`, and
    the path of its judge in results (`evaluator`)."""

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
        """What it is about: suite, test, answer, judge, criterion."""
        return self.suite, self.test, self.digest, self.evaluator, self.criterion

    @property
    def passes(self) -> bool:
        """Whether the answer is good: `pass`, or a score of 0.8 or more."""
        return self.label == "pass" if isinstance(self.label, str) else self.label >= PASS_SCORE


@dataclass(frozen=True)
class Labels:
    """The `valid` labels of people beside suites, in the order of their files, the errors of the
    others, and warnings about those of models or of an earlier question."""

    valid: tuple[Label, ...] = ()
    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()

    @cached_property
    def _by_key(self) -> Mapping[tuple[str, ...], Sequence[Label]]:
        found: dict[tuple[str, ...], list[Label]] = {}
        for label in self.valid:
            found.setdefault(label.key, []).append(label)
        return found

    @property
    def counted(self) -> tuple[Label, ...]:
        """One label for each answer that people agree about."""
        return tuple(own[0] for own in self._by_key.values() if not _differ(own))

    @property
    def conflicts(self) -> tuple[Sequence[Label], ...]:
        """The labels of each answer that some let pass and others fail: none of them counts."""
        return tuple(own for own in self._by_key.values() if _differ(own))


def _differ(labels: Sequence[Label]) -> bool:
    return len({label.passes for label in labels}) > 1


class Estimate(FileModel):
    """An estimate: its `value`, and the one-sided lower 95 % bound `low`; -1 to 1."""

    value: float = Field(ge=-1, le=1)
    low: float = Field(ge=-1, le=1)


class Agreement(FileModel):
    """How a judge agrees with people. `passes` and `fails` are the labels of people of which the
    judge's verdict is known, `tests` the number of tests that they are about. `agreement` is the
    share of equal verdicts, `sensitivity` the share of people's passes that the judge passes,
    `specificity` that of their fails that it fails, `kappa` Cohen's: the agreement beyond chance.
    What labels of one class alone cannot show is None. `kappa_interval` is the two-sided 95 % one,
    for readers."""

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
    """How one judge agrees with people, and about each of the `criteria` of a rubric that has
    labels. It holds for the `models` that the replies named. `type`, `evaluators` (their names) and
    `target` are for readers. `unstable` is the share of answers about which the judge disagrees
    with itself, None if it was asked once. `length` is the share of a pairwise judge's right
    verdicts that stay right with filler behind the worse answer, None of another judge, or without
    a right verdict."""

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
    each judge `samples` times about each labelled answer. `judges` are by the keys of their ways of
    judging."""

    noun = "calibration"

    version: Literal[1] = 1
    day: Annotated[date, Strict(False)]
    samples: Annotated[int, Field(ge=1)]
    judges: Mapping[JudgeKey, JudgeCalibration]
