"""Results of tests, as in a results file (JSONL, camelCase)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, computed_field
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass as result_record

from agentevals_action.model.trace import Spending, Usage

Verdict = Literal["pass", "borderline", "fail"]

#: A test: the path of its suite on head, and its id.
Key = tuple[str, str]

PASS_SCORE = 0.8
BORDERLINE_SCORE = 0.6


#: Names are camelCase in JSON; unknown fields of later versions are ignored.
CAMEL_CASE = ConfigDict(
    alias_generator=to_camel,
    validate_by_name=True,
    serialize_by_alias=True,
    strict=True,
    allow_inf_nan=False,  # pydantic reads NaN, which is not JSON
    defer_build=True,
)


class Record(BaseModel):
    """Base of the JSON documents that only leave the program or only enter it."""

    model_config = ConfigDict(**CAMEL_CASE, frozen=True)


#: The kind of the error of a required test that skipped itself.
SKIPPED = "skipped"
#: The kind of the error of a test that only advisory judges score.
ADVISORY = "advisory"

#: The states of tests (`TestResult.state`) as they follow a number, in the order of reports.
STATES = {
    "pass": "pass",
    "borderline": "borderline",
    "fail": "fail",
    "error": "in error",
    ADVISORY: "not scored",
}


@result_record(frozen=True, kw_only=True, config=CAMEL_CASE)
class ErrorInfo:
    """The error of something that could not be scored; `kind` as in `errors.AttemptError`."""

    kind: str
    message: str

    @property
    def is_advisory(self) -> bool:
        """Whether the error means that no evaluator decides, and nothing went wrong."""
        return self.kind == ADVISORY


@result_record(frozen=True, kw_only=True, config=CAMEL_CASE)
class JudgeRecord:
    """The model that judged: `key` is the digest of the way of judging (see
    `TestsDescription.judge_key`), `models` the names that the replies give, sorted; none if no
    reply could be read."""

    key: str
    models: tuple[str, ...] = ()


@result_record(frozen=True, kw_only=True, config=CAMEL_CASE)
class EvaluatorResult:
    """One evaluator on one answer. `score` is 0-1, None on an error; `required` the gate's
    threshold or False; `passed` whether it reached its threshold (0.8 for one that is no gate) with
    no gate inside it failed, None if unknown. `gates_failed` are gate names from this
    evaluator down, its own and those inside it, which may be known beside an `error`; a closed
    `safety_gate` has its score of 0 even then. `is_unknown`: the trace lacks a figure that
    it, or an evaluator inside it, needs. `judge` is known of a type that asks a model. With a
    reason why it is `advisory`, it is shown and decides nothing."""

    name: str
    type: str
    score: float | None
    weight: float = 1.0
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    reasoning: str = ""
    details: Mapping[str, Any] = Field(default_factory=dict)
    required: float | bool = False
    passed: bool | None = None
    gates_failed: tuple[str, ...] = ()
    evaluator_results: tuple["EvaluatorResult", ...] = ()
    error: ErrorInfo | None = None
    is_unknown: bool = Field(default=False, exclude_if=lambda is_unknown: not is_unknown)
    judge: JudgeRecord | None = Field(default=None, exclude_if=lambda judge: judge is None)
    advisory: str = Field(default="", exclude_if=lambda reason: not reason)


def by_path(results: Sequence[EvaluatorResult], above: str = "") -> dict[str, EvaluatorResult]:
    """The results of evaluators by path, also of evaluators inside others (`composite/child`)."""
    results_by_path: dict[str, EvaluatorResult] = {}
    for result in results:
        results_by_path[f"{above}{result.name}"] = result
        results_by_path |= by_path(result.evaluator_results, f"{above}{result.name}/")
    return results_by_path


def preferred_sides(result: EvaluatorResult) -> frozenset[int]:
    """What a pairwise evaluator prefers in its two orders: 1 head's answer, -1 base's, 0 neither.
    Several values are a flip: the judge judges the place of an answer."""
    scores = (order.score for order in result.evaluator_results)
    return frozenset((score > 0.5) - (score < 0.5) for score in scores if score is not None)


def passed_by_name(results: Sequence[EvaluatorResult]) -> dict[str, bool | None]:
    """Whether evaluators passed, by path, also evaluators inside others."""
    return {path: result.passed for path, result in by_path(results).items() if not result.advisory}


@result_record(frozen=True, kw_only=True, config=CAMEL_CASE)
class TraceSummary:
    """The summary of a trace; None where unknown. `event_count` counts tool calls, `duration_ms` is
    in milliseconds, `cost_source` is where the cost is from (`reply`, `price of the target`,
    `price table` with its date). Refused calls count nowhere; `refused_tools` are their tools.
    `hidden_tools` are the tools whose calls the agent does not show."""

    event_count: int = 0
    tool_names: tuple[str, ...] = ()
    tool_call_count: int | None = None
    llm_call_count: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = Field(default=None, exclude_if=lambda count: count is None)
    cache_write_tokens: int | None = Field(default=None, exclude_if=lambda count: count is None)
    cost_usd: float | None = None
    cost_source: str = Field(default="", exclude_if=lambda source: not source)
    duration_ms: float | None = None
    refused_tools: tuple[str, ...] = ()
    hidden_tools: tuple[str, ...] = ()

    @property
    def usage(self) -> Usage:
        """The tokens and the cost."""
        return Usage(**{field.name: getattr(self, field.name) for field in fields(Usage)})


@result_record(frozen=True, kw_only=True, config=CAMEL_CASE)
class Fingerprint:
    """Three digests (hexadecimal SHA-256) of what a result depends on; see
    `execution/fingerprint.py`."""

    question: str
    grading: str
    agent: str


@result_record(frozen=True, kw_only=True, config=CAMEL_CASE)
class GateRecord:
    """A gate that the test declares: its name and where it stands (`path` relative to the
    repository)."""

    name: str
    path: str
    line: int


@result_record(frozen=True, kw_only=True, config=CAMEL_CASE)
class SampleResult:
    """One scored attempt. `output_messages` (wire form) keep the answer so that it can be
    scored again, `file_changes` (unified diff, None without a workspace) what the agent did to its
    files. `cached`: the answer is a cached one. `spent` is what the agent and the judges
    cost. A `fresh` sample is one of a confirmation."""

    score: float | None = None
    verdict: Verdict | None = None
    role: Literal["main", "fresh"] = Field(default="main", exclude_if=lambda role: role == "main")
    gates_failed: tuple[str, ...] = ()
    candidate_answer: str = ""
    output_messages: tuple[Mapping[str, Any], ...] = ()
    file_changes: str | None = None
    cached: bool = False
    trace_summary: TraceSummary | None = None
    evaluator_results: tuple[EvaluatorResult, ...] = ()
    spent: Spending = Spending()  # frozen
    error: ErrorInfo | None = None

    @property
    def is_advisory(self) -> bool:
        """Whether no evaluator decides about the sample."""
        return self.error is not None and self.error.is_advisory

    @property
    def advisory(self) -> frozenset[str]:
        """The paths of its evaluators that decide nothing, also of evaluators inside others."""
        results = by_path(self.evaluator_results)
        return frozenset(name for name, result in results.items() if result.advisory)

    @property
    def is_judged(self) -> bool:
        """Whether a model judged the sample, as far as the results of its evaluators are stored."""
        return any(result.judge for result in by_path(self.evaluator_results).values())


def shown_sample(samples: Sequence[SampleResult], verdict: Verdict | None) -> SampleResult:
    """The sample that shows a verdict: the first sample with the verdict, else the first."""
    return next((sample for sample in samples if sample.verdict == verdict), samples[0])


@result_record(frozen=True, kw_only=True, config=CAMEL_CASE)
class TestResult:
    """One line of a results file: one test over all its samples.

    `eval_path` is the suite's file, `path` and `line` where the test itself stands (an imported
    file, a JSONL row). `question` is the last message of the user; `input_messages` are all
    messages, with their contents as text and the names of files, if there are several or a picture;
    the content of a message with a picture is its blocks, pictures as `data:` URIs.
    `hits`, `misses`, `evaluator_results`, `candidate_answer` and `trace_summary` are those of the
    sample that the verdict is shown by.
    `spent` is the sum over the samples. Those of a confirmation count for this test, not for the
    suite's mean; `unconfirmed` states why some of them are missing. If the change edits what scores
    them, a result of base has the result of the same answers `by_head`'s evaluators, one of head
    that `by_base`'s. A result of another arm has the name of its `variant`, and in `declared` the
    samples of the suite as declared that were taken with its fresh ones. `suite_samples` were taken
    again to confirm something about the suite as a whole, errors included: nothing of the test
    follows from them but what it `spent`. `pairs` are comparisons of head's answer with base's,
    which have no score: their `evaluator_results` are those of pairwise evaluators, 1 if head's
    answer is much better, 0 if base's is, 0.5 for a tie. A `fresh` one is of a confirmation."""

    __test__ = False  # pytest: not a test case

    timestamp: str
    eval_id: str
    dataset: str
    conversation_id: str | None = None
    score: float | None
    verdict: Verdict | None
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    candidate_answer: str = ""
    target: str = ""
    trace_summary: TraceSummary | None = None
    evaluator_results: tuple[EvaluatorResult, ...] = ()
    eval_path: str
    path: str = ""
    line: int = 1
    question: str = ""
    input_messages: tuple[Mapping[str, Any], ...] = ()
    gates: tuple[GateRecord, ...] = ()
    gates_failed: tuple[str, ...] = ()
    samples: tuple[SampleResult, ...] = ()
    unconfirmed: str = Field(default="", exclude_if=lambda reason: not reason)
    spent: Spending = Spending()  # frozen
    duration_ms: float | None = None
    error: ErrorInfo | None = None
    fingerprint: Fingerprint | None = None
    by_head: "TestResult | None" = Field(default=None, exclude_if=lambda result: result is None)
    by_base: "TestResult | None" = Field(default=None, exclude_if=lambda result: result is None)
    variant: str = Field(default="", exclude_if=lambda name: not name)
    declared: tuple[SampleResult, ...] = Field(default=(), exclude_if=lambda taken: not taken)
    suite_samples: tuple[SampleResult, ...] = Field(default=(), exclude_if=lambda taken: not taken)
    pairs: tuple[SampleResult, ...] = Field(default=(), exclude_if=lambda pairs: not pairs)

    @property
    def key(self) -> Key:
        """The path of its suite and its id."""
        return self.eval_path, self.eval_id

    @property
    def is_advisory(self) -> bool:
        """Whether no evaluator decides about the test: it is not scored, and this is no error."""
        return self.verdict is None and self.error is not None and self.error.is_advisory

    @property
    def state(self) -> str:
        """The verdict in a word; `advisory`, or `error`, without a verdict."""
        return self.verdict or (ADVISORY if self.is_advisory else "error")

    @property
    def advisory(self) -> frozenset[str]:
        """The names of the evaluators that decide nothing in a sample."""
        return frozenset().union(*(sample.advisory for sample in self.samples))

    @property
    def main_samples(self) -> tuple[SampleResult, ...]:
        """The samples of the run itself, without samples of a confirmation, which depend on
        the result of the first samples and would bias a mean."""
        return tuple(sample for sample in self.samples if sample.role == "main")

    @property
    def fresh_samples(self) -> tuple[SampleResult, ...]:
        """The samples of the confirmation."""
        return tuple(sample for sample in self.samples if sample.role == "fresh")


def as_declared(results: Iterable[TestResult]) -> Sequence[TestResult]:
    """The results without results of variants; all results if a variant ran alone."""
    every = tuple(results)
    return tuple(result for result in every if not result.variant) or every


@result_record(frozen=True, kw_only=True, config=CAMEL_CASE)
class EvaluatorSummary:
    """How one evaluator did over a suite."""

    name: str
    type: str
    total: int
    error: int
    average_score: float | None


@result_record(frozen=True, kw_only=True, config=CAMEL_CASE)
class SuiteSummary:
    """Totals of a suite; `pass_rate` = pass / scored by verdicts, which are over all samples, None
    when nothing was scored; `average_score` is over the run's own samples alone. `pass_all` is the
    share of the scored tests that pass in all of these, None for one sample. `advisory` tests have
    no evaluator that decides.
    `spent` is what the run cost. `usage` sums the traces of all samples, cached or not, so that two
    runs can be compared; a figure is None when no trace has it. Of all `samples`,
    `samples_with_cost` have a cost and `samples_with_tokens` both token counts: if these are fewer,
    the sums are partial."""

    eval_path: str = Field(exclude=True)
    dataset: str = Field(exclude=True)
    total: int
    passed: int = Field(validation_alias="pass", serialization_alias="pass")
    borderline: int
    failed: int = Field(validation_alias="fail", serialization_alias="fail")
    errored: int = Field(validation_alias="error", serialization_alias="error")
    advisory: int = Field(default=0, exclude_if=lambda count: not count)
    pass_rate: float | None
    average_score: float | None
    by_evaluator: tuple[EvaluatorSummary, ...] = ()
    top_misses: tuple[str, ...] = ()
    spent: Spending = Spending()  # frozen
    usage: Usage = Usage()  # frozen
    samples: int = 0
    samples_with_cost: int = 0
    samples_with_tokens: int = 0
    duration_ms: float | None = None
    pass_all: float | None = None

    @property
    def scored(self) -> int:
        """The number of tests with a verdict."""
        return self.total - self.errored - self.advisory

    @computed_field  # type: ignore[prop-decorator]  # as pydantic documents it
    @property
    def cost_usd(self) -> float | None:
        """The US dollars that the run cost, as far as they are known."""
        return self.spent.cost_usd


@dataclass(frozen=True)
class Score:
    """The score of an evaluator type: `value` is 0-1; `gates_failed` names gates inside it
    (`safe`), without its own name (empty for itself); `children` are the results of a composite,
    `error` is the error of a child: then `value` is None unless it is known without the child.
    `is_unknown`: the trace lacks the data, a miss that `negate` does not turn into a pass. `models`
    are the names of the models that judged, `advisory` is the reason why no child decides.
    ValueError without a value and an error."""

    value: float | None
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    reasoning: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    gates_failed: tuple[str, ...] = ()
    children: tuple[EvaluatorResult, ...] = ()
    error: ErrorInfo | None = None
    is_unknown: bool = False
    models: tuple[str, ...] = ()
    advisory: str = ""

    def __post_init__(self) -> None:
        if self.value is None and self.error is None:
            raise ValueError("a score needs a value or an error")
