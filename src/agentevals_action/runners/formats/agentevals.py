"""Our own `results.jsonl`, as a user's script writes it. A line has at least an id and a verdict;
the rows of our own runs are valid, too."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Annotated, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from agentevals_action.model.result import Record, Verdict
from agentevals_action.model.suite import Suite
from agentevals_action.model.trace import Usage
from agentevals_action.runners.formats.base import (
    Amount,
    Count,
    Format,
    ResultsError,
    Row,
    Selection,
    place_in,
    read_file,
)
from agentevals_action.validation.field_errors import invalid_json
from agentevals_action.validation.file_model import NonEmpty

_FILE = "results.jsonl"


class LineError(Record):
    """Why a test could not be scored."""

    message: NonEmpty


class LineTrace(Record):
    """What the agent used, as far as it is known."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cost_usd: Amount | None = None


class ResultLine(Record):
    """A line: one sample of a test. Other fields are ignored."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": [name]} for name in ("verdict", "error", "skipped")]
        }
    )

    # The file of a selection has one id a line.
    eval_id: Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f\x7f]*$")] = Field(
        description="The id of the test, the same on head and base, without line breaks."
    )
    verdict: Verdict | None = Field(default=None, description="The outcome. Only `pass` passes.")
    error: LineError | None = Field(
        default=None,
        description="In place of a verdict: the `message` of an outage, which is no failure of "
        "the agent.",
    )
    skipped: str = Field(default="", description="In place of a verdict: why it did not run.")
    score: float | None = Field(default=None, description="Shown; it decides nothing.")
    question: str = Field(default="", description="What the agent was asked.")
    candidate_answer: str = Field(default="", description="The answer of the agent.")
    misses: tuple[str, ...] = Field(default=(), description="What is wrong with it.")
    target: str = Field(default="", description="The name of the agent.")
    path: str = Field(
        default="",
        description="The file of the test, if it is not the suite's: one that the suite names, or "
        "of its folder.",
    )
    line: Annotated[int, Field(ge=1, lt=2**31)] | None = Field(
        default=None, description="The line of the test in that file, from 1."
    )
    duration_ms: Amount | None = Field(default=None, description="Milliseconds that it took.")
    trace_summary: LineTrace | None = Field(
        default=None,
        description="`inputTokens`, `outputTokens`, `costUsd`: those of the agent that are known.",
    )
    fingerprint: dict[str, str] | None = Field(
        default=None,
        description="`question` and `grading`: texts that change with what is asked, and with "
        "what scores the answer. By default: the suite's file and the files that it names, and for "
        "`grading` those that the `command` names.",
    )

    @model_validator(mode="after")
    def _has_outcome(self) -> Self:
        if not (self.verdict or self.error or self.skipped):
            problem = "it has no `verdict`, and neither an `error` nor why it was `skipped`"
            raise PydanticCustomError("no_outcome", problem)
        return self

    def row(self, suite: Suite) -> Row:
        """This line as a row. A failure stays one, whatever else the line says."""
        has_failed = self.verdict not in (None, "pass")
        usage = self.trace_summary.model_dump(by_alias=False) if self.trace_summary else {}
        fingerprint = self.fingerprint or {}
        return Row(
            id=self.eval_id,
            passed=self.verdict == "pass",
            error=self.error.message if self.error and not has_failed else "",
            skipped="" if has_failed else self.skipped,
            question=self.question,
            answer=self.candidate_answer,
            target=self.target,
            asked=fingerprint.get("question"),
            graded=fingerprint.get("grading"),
            score=self.score,
            reason="; ".join(self.misses),
            usage=Usage(**usage),
            duration_ms=self.duration_ms,
            location=place_in(suite, self.path or suite.path, self.line) if self.line else None,
        )


class OwnResults(Format):
    """Our own format, for a command of the user."""

    name = "agentevals"
    version = "schemas/own-results.schema.json"

    def read(self, folder: Path, suite: Suite) -> Sequence[Row]:
        """The rows of `results.jsonl`."""
        lines = enumerate(BytesIO(read_file(folder, _FILE)), 1)
        return [_read(number, text).row(suite) for number, text in lines if text.strip()]

    def select(self, rows: Sequence[Row], suite: Suite) -> Sequence[Selection]:
        """A file with one id a line."""
        ids = dict.fromkeys(row.id for row in rows)
        return [Selection("".join(f"{name}\n" for name in ids))]


def _read(number: int, text: bytes) -> ResultLine:
    try:
        return ResultLine.model_validate_json(text)
    except ValidationError as error:
        raise ResultsError(f"line {number} of its {_FILE}: {invalid_json(error)}") from None
