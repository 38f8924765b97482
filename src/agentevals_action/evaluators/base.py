"""The base class of the evaluator types, and the function that runs an evaluator on one answer."""

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import ValidationInfo, model_validator

from agentevals_action.errors import AttemptError
from agentevals_action.model.files import NamedFile
from agentevals_action.model.result import PASS_SCORE, ErrorInfo, EvaluatorResult, Score
from agentevals_action.model.suite import Evaluator, EvaluatorTraits, Message, Test
from agentevals_action.model.trace import Trace
from agentevals_action.results.scoring import reaches
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.isolation import ChildUser

Value = TypeVar("Value")
#: Sends messages to the evaluator's judge and returns the text of its reply; raises AttemptError of
#: kind `judge` or `timeout`.
Ask = Callable[[Evaluator, Sequence[Message]], Awaitable[str]]


@dataclass(frozen=True)
class Judges:
    """The targets that the program of a code judge may call.

    `default` is the name of the evaluator's judge, `names` are all targets of the suite. `ask`
    sends messages to one of them; AttemptError if it does not answer. The test pays for the calls.
    """

    default: str
    names: tuple[str, ...]
    ask: Callable[[str, Sequence[Message]], Awaitable[Trace]]


@dataclass(frozen=True)
class Case:
    """One answer, and the context in which it is scored.

    `root` is the repository root of the tree under test, `timeout` the test's limit in seconds.
    `environment` is the complete environment of a judge's process, `withheld` the names of the
    variables that were removed from it. `workspace` is the folder in which the agent worked and
    `file_changes` the unified diff of its changes; both are None without a workspace. `user` is
    the user of the judges' processes, None for that of the action. `judges`
    returns the targets that a program may call for an evaluator; AttemptError of kind
    `configuration` if there is no judge. `judge_path` returns the path from which a judge runs for
    a path in `root`."""

    test: Test
    trace: Trace
    root: Path
    timeout: float
    environment: Mapping[str, str]
    withheld: tuple[str, ...]
    ask: Ask
    judges: Callable[[Evaluator], Judges]
    workspace: Path | None = None
    file_changes: str | None = None
    user: ChildUser | None = None
    judge_path: Callable[[Path], Path] = lambda path: path


class EvaluatorOptions(EvaluatorTraits):
    """The fields of one evaluator type. A subclass sets `type` and implements `evaluate`.

    `aliases` are other names of the type (`-` and `_` are equal already). With `passes_fields`,
    unknown fields are part of `config`. The loader builds the evaluators in `children_field`
    first."""

    type: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    passes_fields: ClassVar[bool] = False

    @model_validator(mode="before")
    @classmethod
    def _without_type(cls, data: Any) -> Any:
        # It chose this class.
        is_object = isinstance(data, Mapping) and "type" in data
        return {key: data[key] for key in data if key != "type"} if is_object else data

    @abstractmethod
    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """Scores one case; raises AttemptError if it could not be scored."""

    def label(self) -> str:
        """The operand in a generated name (`contains-DENIED`): the field `value` by default."""
        value = getattr(self, "value", "")
        return value if isinstance(value, str) else "-".join(value)

    def warnings(self) -> Sequence[tuple[str, str, str]]:
        """Probable mistakes: the field, a phrase that follows its name, the advice."""
        return ()

    def files(self, folder: Folder) -> Sequence[NamedFile]:
        """Files that these options name; their contents are part of the grading fingerprint."""
        return ()


def require(condition: Callable[[Any], object], problem: str) -> Callable[[Value], Value]:
    """A validator: ValueError with the problem ("problem; advice") for a value without the
    condition."""

    def validate(value: Value) -> Value:
        if not condition(value):
            raise ValueError(problem)
        return value

    return validate


def is_given(value: Any) -> bool:
    """Whether a value is not null."""
    return value is not None


def folder_of(info: ValidationInfo) -> Folder:
    """The folder of the declaring file; TypeError if the options are validated without one."""
    if not isinstance(info.context, Folder):
        raise TypeError("these options are read with the folder of the declaring file")
    return info.context


def walk(evaluator: Evaluator) -> Iterator[Evaluator]:
    """An evaluator and all evaluators inside it, at any depth, in suite order."""
    yield evaluator
    for child in evaluator.options.children():
        yield from walk(child)


def gate_path(name: str, inner: str) -> str:
    """The name of a gate inside the evaluator `name`; the evaluator's own if `inner` is empty."""
    return f"{name}/{inner}" if inner else name


async def run_evaluators(
    evaluators: Sequence[Evaluator], case: Case
) -> tuple[EvaluatorResult, ...]:
    """Runs evaluators on one case concurrently; the results are in the order of `evaluators`."""
    return tuple(await asyncio.gather(*(run_evaluator(each, case) for each in evaluators)))


async def run_evaluator(evaluator: Evaluator, case: Case) -> EvaluatorResult:
    """Runs one evaluator on one case and applies its negation and its gate."""
    if not isinstance(evaluator.options, EvaluatorOptions):
        raise TypeError(f"the options of {evaluator.name} are not those of an evaluator type")
    name, threshold = evaluator.name, evaluator.threshold
    result = partial(
        EvaluatorResult,
        name=name,
        type=evaluator.type,
        weight=evaluator.weight,
        required=threshold or False,
    )
    try:
        score = await evaluator.options.evaluate(case, evaluator)
    except AttemptError as error:
        return result(score=None, error=ErrorInfo(kind=error.kind, message=error.sentence))
    value, hits, misses = score.value, score.hits, score.misses
    if evaluator.negate and score.is_unknown and value is not None:
        value = 0.0  # what is unknown counts against the answer, negated or not
    elif evaluator.negate and value is not None:
        value, hits, misses = 1 - value, misses, hits
    passed = None if value is None else reaches(value, threshold or PASS_SCORE)
    own = (name,) if threshold is not None and passed is False else ()
    inner = tuple(gate_path(name, gate) for gate in score.gates_failed)
    return result(
        score=None if value is None else float(value),
        hits=hits,
        misses=misses,
        reasoning=score.reasoning,
        details=score.details,
        passed=False if inner else passed,
        gates_failed=tuple(dict.fromkeys(own + inner)),
        evaluator_results=score.children,
        error=score.error,
        is_unknown=score.is_unknown,
    )
