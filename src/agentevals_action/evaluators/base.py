"""What every evaluator type is: validated options that grade one case."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from agentevals_action.entries.entry import Entry
from agentevals_action.errors import AttemptError
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.result import PASS_SCORE, ErrorInfo, EvaluatorResult, Score
from agentevals_action.model.suite import Evaluator, Message, NamedFile, Test
from agentevals_action.model.trace import Trace
from agentevals_action.results.scoring import reaches
from agentevals_action.system.paths import Folder

#: Sends messages to the judge of the evaluator and gives the text of its reply; raises AttemptError
#: of kind `judge` or `timeout`.
Ask = Callable[[Evaluator, Sequence[Message]], Awaitable[str]]


@dataclass(frozen=True)
class Judges:
    """Whom a judge's program may ask: `default` names the evaluator's judge, `names` every target
    of the suite; `ask` sends messages to one of them and raises AttemptError when it gives no
    answer. What the calls cost is the test's."""

    default: str
    names: tuple[str, ...]
    ask: Callable[[str, Sequence[Message]], Awaitable[Trace]]


@dataclass(frozen=True)
class Case:
    """One answer to grade, and what grading may use.

    `root` is the repository root of the tree under test, `timeout` the test's limit in seconds,
    `environment` all that a judge's process may see, `withheld` the names of variables that were
    kept from it (for the hint when it fails). `workspace` is the folder that the agent worked in
    and `file_changes` the unified diff of what it did there, None without one. `judges` tells whom
    a program may ask on behalf of an evaluator; AttemptError of kind `configuration` when there is
    no judge."""

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


@dataclass(frozen=True)
class Misfit:
    """What of an evaluator's options does not fit a test: the place where it is known, the problem,
    and what to do instead."""

    location: Location | None
    problem: str
    advice: str


class Options(Entry):
    """The fields of one evaluator type. A plug-in subclasses it, names its `type` and writes
    `evaluate`.

    `aliases` are other spellings of the type (`-` and `_` are equal already), `spellings` other
    spellings of a field (`{"script": ("command",)}`). With `asks_judge` its `target` is the common
    field that names a judge; a field of its own by that name means what the type says.
    `children_field` is the field of a type that holds other evaluators: the loader reads them and
    hands them over as `Evaluator`s with names of their own."""

    type: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    deterministic: ClassVar[bool] = True
    asks_judge: ClassVar[bool] = False
    children_field: ClassVar[str] = ""

    @abstractmethod
    async def evaluate(self, case: Case, evaluator: Evaluator) -> Score:
        """Grades one case; raises AttemptError when it cannot be told."""

    def label(self) -> str:
        """The operand as it appears in a generated name (`contains-DENIED`), empty when there is
        none."""
        return ""

    def needs_judge(self) -> bool:
        """Whether there must be a judge target for these options."""
        return self.asks_judge

    def doubts(self) -> Sequence[tuple[str, str, str]]:
        """What is probably a mistake: the field, the problem in words that begin after its name,
        and what to do instead."""
        return ()

    def check(self, test: Test) -> Sequence[Misfit]:
        """What of these options, not of those inside, does not fit a test; each is a fault of the
        suite."""
        return ()

    def children(self) -> Sequence[Evaluator]:
        """The evaluators directly inside this one, in suite order."""
        return ()

    def inner_gates(self) -> Sequence[tuple[str, Location | None]]:
        """Gates inside this evaluator, by their name below it, with the place of their entry where
        it is known.

        An empty name is the evaluator itself, when it can fail the test without being `required`.
        """
        return ()

    def files(self, folder: Folder) -> Sequence[NamedFile]:
        """Files that these options name, whose contents are part of the grading."""
        return ()


def every(evaluator: Evaluator) -> Iterator[Evaluator]:
    """An evaluator and all evaluators inside it, at any depth, in suite order."""
    yield evaluator
    if isinstance(evaluator.options, Options):
        for child in evaluator.options.children():
            yield from every(child)


def gate_path(name: str, inner: str) -> str:
    """The name of a gate inside the evaluator `name`; of the evaluator itself when `inner` is
    empty."""
    return f"{name}/{inner}" if inner else name


async def grade_all(evaluators: Sequence[Evaluator], case: Case) -> tuple[EvaluatorResult, ...]:
    """Runs evaluators on one case side by side; their results in the order given."""
    if all(
        inside.options.deterministic
        for one in evaluators
        for inside in every(one)
        if isinstance(inside.options, Options)
    ):
        # They wait for nothing, and a task for each would take longer than its grading.
        return tuple([await grade(evaluator, case) for evaluator in evaluators])
    import asyncio  # late: suites are read without it

    return tuple(await asyncio.gather(*(grade(evaluator, case) for evaluator in evaluators)))


async def grade(evaluator: Evaluator, case: Case) -> EvaluatorResult:
    """Runs one evaluator on one case: negation, gate and errors are the same for every type."""
    options = evaluator.options
    if not isinstance(options, Options):
        raise TypeError(f"{evaluator.type} has no evaluator behind it")
    try:
        return _result(evaluator, await options.evaluate(case, evaluator))
    except AttemptError as error:
        return EvaluatorResult(
            name=evaluator.name,
            type=evaluator.type,
            weight=evaluator.weight,
            required=evaluator.threshold or False,
            score=None,
            error=ErrorInfo(kind=error.kind, message=error.sentence),
        )


def _result(evaluator: Evaluator, score: Score) -> EvaluatorResult:
    value, best, hits, misses = score.value, _best(score), score.hits, score.misses
    if evaluator.negate and value is not None and best is not None:
        # What is unknown counts against it, negated or not.
        hits, misses = (misses, hits) if best == value else (hits, misses)
        value, best = 1 - best, 1 - value
    passed = None if value is None else reaches(value, evaluator.threshold or PASS_SCORE)
    own = (evaluator.name,) if evaluator.threshold is not None and passed is False else ()
    inner = tuple(gate_path(evaluator.name, gate) for gate in score.gates_failed)
    return EvaluatorResult(
        name=evaluator.name,
        type=evaluator.type,
        weight=evaluator.weight,
        required=evaluator.threshold or False,
        score=value if value is None else float(value),  # a type may well say 1
        hits=hits,
        misses=misses,
        reasoning=score.reasoning,
        details=score.details,
        passed=False if inner else passed,
        gates_failed=tuple(dict.fromkeys(own + inner)),
        evaluator_results=score.children,
        error=score.error,
        best=None if best == value else best,
    )


def _best(score: Score) -> float | None:
    return score.best if score.best is not None else score.value if score.known else 1.0
