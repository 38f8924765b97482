"""Judges that are measured: what a calibration found."""

from collections import Counter
from collections.abc import Mapping
from datetime import date
from functools import cached_property
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict, field_validator

from agentevals_action.formatting import join_choices
from agentevals_action.validation.file_model import FileModel, ListOf, NonEmpty

#: The file of the calibration, in the working directory.
CALIBRATION_FILE = "calibration.json"
#: The version of its form.
CALIBRATION_VERSION = 1

#: The digest of a way of judging, see `TestsDescription.judge_key`.
JudgeKey = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
#: What a calibration measures, and a floor names.
Metric = Literal["agreement", "sensitivity", "specificity", "kappa"]
_Count = Annotated[int, Field(ge=0)]
_Share = Annotated[float, Field(ge=0, le=1)]


class Estimate(FileModel):
    """An estimate: its `value`, and the one-sided lower 95 % bound `low`; -1 to 1."""

    value: float = Field(ge=-1, le=1, description="The value on the labelled answers.")
    low: float = Field(ge=-1, le=1, description="The one-sided 95 % lower bound.")


class Agreement(FileModel):
    """How a judge agrees with people. `passes` and `fails` are the labels of people of which the
    judge's verdict is known, `tests` the number of tests that they are about. Sensitivity is the
    share of people's passes that the judge passes, specificity that of their fails that it fails.
    What labels of one class alone cannot show is None."""

    passes: _Count = Field(description="Labels `pass` of people.")
    fails: _Count = Field(description="Labels `fail` of people.")
    tests: _Count = Field(description="Tests that the labels are about.")
    agreement: Estimate | None = Field(description="The share of equal verdicts.")
    sensitivity: Estimate | None = Field(description="The share of passes that it passes.")
    specificity: Estimate | None = Field(description="The share of fails that it fails.")
    kappa: Estimate | None = Field(description="Cohen's kappa: agreement beyond chance.")


class CriterionCalibration(Agreement):
    """How a judge agrees with people about one criterion of a rubric."""

    noun = "criterion"

    id: NonEmpty = Field(description="The id of the criterion.")


class JudgeCalibration(Agreement):
    """How one judge agrees with people. It holds for the way of judging `key` by the `models` that
    the replies named. `type`, `evaluators` and `target` are for readers. `unstable` is the share
    of answers about which the judge disagrees with itself, None if it was asked once."""

    noun = "judge"

    key: JudgeKey = Field(description="The digest of the way of judging.")
    models: Annotated[ListOf[NonEmpty], Field(min_length=1)] = Field(
        description="The models that the replies named."
    )
    type: NonEmpty = Field(description="The type of the evaluator.")
    evaluators: ListOf[NonEmpty] = Field(description="Names of the evaluators that judge so.")
    target: NonEmpty = Field(description="The name of the target that judges.")
    unstable: _Share | None = Field(
        description="The share of answers about which it disagrees with itself."
    )
    criteria: ListOf[CriterionCalibration] = Field(
        default=(), description="The same for each criterion that has labels."
    )


def _check_version(version: int) -> int:
    if version != CALIBRATION_VERSION:
        raise ValueError(
            f"this program reads version {CALIBRATION_VERSION}; run "
            "`agentevals-action judge calibrate` with the version of the program that reads it"
        )
    return version


class Calibration(FileModel):
    """The content of `calibration.json`: what `judge calibrate` measured on a day (UTC), asking
    each judge `samples` times about each labelled answer."""

    noun = "calibration"

    version: Annotated[int, AfterValidator(_check_version)] = CALIBRATION_VERSION
    day: Annotated[date, Strict(False)] = Field(description="The day (UTC), as YYYY-MM-DD.")
    samples: Annotated[int, Field(ge=1)] = Field(description="Judgements of each answer.")
    judges: ListOf[JudgeCalibration] = Field(description="The judges, by their keys.")

    @field_validator("judges")
    @classmethod
    def _has_each_once(cls, judges: tuple[JudgeCalibration, ...]) -> tuple[JudgeCalibration, ...]:
        repeated = [key for key, count in Counter(each.key for each in judges).items() if count > 1]
        if repeated:
            raise ValueError(f"it has {join_choices(repeated)} twice; keep one of them")
        return judges

    @cached_property
    def by_key(self) -> Mapping[str, JudgeCalibration]:
        """The judges by their keys."""
        return {judge.key: judge for judge in self.judges}
