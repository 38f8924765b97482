"""What every evaluator type is: validated options that grade one case."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from agentevals_action.errors import AttemptError
from agentevals_action.model.fault import Location
from agentevals_action.model.result import PASS_SCORE, ErrorInfo, EvaluatorResult, Score
from agentevals_action.model.suite import Evaluator, Message, NamedFile, Test
from agentevals_action.model.trace import Trace
from agentevals_action.paths import Folder
from agentevals_action.scoring import reaches

#: Sends messages to the judge of the evaluator and gives the text of its reply; raises AttemptError of kind `judge` or `timeout`.
Ask = Callable[[Evaluator, Sequence[Message]], Awaitable[str]]


@dataclass(frozen=True)
class Case:
    """One answer to grade, and what grading may use.

    `root` is the repository root of the tree under test, `timeout` the test's limit in seconds, `environment` all that a judge's
    process may see, `withheld` the names of variables that were kept from it (for the hint when it fails).
    """

    test: Test
    trace: Trace
    root: Path
    timeout: float
    environment: Mapping[str, str]
    withheld: tuple[str, ...]
    ask: Ask


class Options(BaseModel):
    """The fields of one evaluator type. A plug-in subclasses it, names its `type` and writes `evaluate`.

    `aliases` are other spellings of the type (`-` and `_` are equal already), `spellings` other spellings of a field
    (`{"script": ("command",)}`). Validation runs with a `paths.Folder` as context, for fields that name files.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    type: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    deterministic: ClassVar[bool] = True
    asks_judge: ClassVar[bool] = False

    @abstractmethod
    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """Grades one case; raises AttemptError when it cannot be told."""

    def label(self) -> str:
        """The operand as it appears in a generated name (`contains-DENIED`), empty when there is none."""
        return ""

    def inner_gates(self) -> Sequence[tuple[str, Location | None]]:
        """Gates inside this evaluator, by their name below it, with the place of their entry where it is known."""
        return ()

    def files(self, folder: Folder) -> Sequence[NamedFile]:
        """Files that these options name, whose contents are part of the grading."""
        return ()


async def grade(evaluator: Evaluator, case: Case) -> EvaluatorResult:
    """Runs one evaluator on one case: negation, gate and errors are the same for every type."""
    options = evaluator.options
    if not isinstance(options, Options):
        raise TypeError(f"{evaluator.type} has no evaluator behind it")
    common = {"name": evaluator.name, "type": evaluator.type, "weight": evaluator.weight, "required": evaluator.threshold or False}
    try:
        score = await options.evaluate(case, evaluator)
    except AttemptError as error:
        message = f"{error} {error.hint}".strip()
        return EvaluatorResult(**common, score=None, error=ErrorInfo(kind=error.kind, message=message))
    return _result(evaluator, score, common)


def _result(evaluator: Evaluator, score: Score, common: Mapping[str, object]) -> EvaluatorResult:
    value, hits, misses = score.value, score.hits, score.misses
    if evaluator.negate:
        value, hits, misses = 1 - value, misses, hits
    passed = reaches(value, evaluator.threshold or PASS_SCORE)
    own = (evaluator.name,) if evaluator.threshold is not None and not passed else ()
    inner = tuple(f"{evaluator.name}/{gate}" for gate in score.gates_failed)
    return EvaluatorResult(
        **common,
        score=value,
        hits=hits,
        misses=misses,
        reasoning=score.reasoning,
        details=score.details,
        passed=passed and not inner,
        gates_failed=own + inner,
        evaluator_results=score.children,
    )
