"""The executor of a suite runs its tests in one tree, and samples single tests again. The engine
has an executor for our suites, `runners/` has one for the programs of others. What uses an executor
knows its events and its results, and not which executor it is."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from agentevals_action.errors import AttemptError
from agentevals_action.model.result import ErrorInfo, SampleResult, TestResult
from agentevals_action.model.suite import Suite


@dataclass(frozen=True)
class SuiteStarted:
    """A suite at `path` starts with a number of `tests`; None if they are known only when it has
    ended, because `program` runs it."""

    path: str
    tests: int | None
    program: str = ""


@dataclass(frozen=True)
class AttemptStarted:
    """An attempt of a test starts."""

    path: str
    test: str


@dataclass(frozen=True)
class SuiteEnded:
    """All results of the suite at `path` are known."""

    path: str


#: What happens while a suite runs. A result contains no secret.
Event = SuiteStarted | AttemptStarted | TestResult | SuiteEnded
Emit = Callable[[Event], None]
#: A sample of head and one of base, whose answers are compared.
Pair = tuple[SampleResult, SampleResult]
Key = TypeVar("Key")
Result = TypeVar("Result")


async def run_at_once(
    run: Callable[[Key], Coroutine[Any, Any, Result]], keys: Iterable[Key]
) -> dict[Key, Result]:
    """What `run` returns for each key; it runs for all keys at the same time."""
    async with asyncio.TaskGroup() as tasks:
        running = {key: tasks.create_task(run(key)) for key in keys}
    return {key: task.result() for key, task in running.items()}


@dataclass(frozen=True)
class SuiteResults:
    """The results of the tests of a suite, and the reasons of the tests that skipped themselves, by
    id. With an `error`, the suite could not run at all, and each result has this error."""

    rows: tuple[TestResult, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)
    error: AttemptError | None = None


class SuiteExecutor(ABC):
    """Runs a suite in its tree.

    `scores_answers`: whether it can score stored answers."""

    scores_answers: ClassVar[bool]

    def __init__(self, suite: Suite) -> None:
        self.suite = suite

    @property
    def name(self) -> str:
        """The name of the suite, or of the program that runs it."""
        return self.suite.name

    @property
    @abstractmethod
    def tests(self) -> Sequence[str] | None:
        """The ids of its tests, None if they are known only when it has run."""

    async def run(self, emit: Emit, without: Collection[str] = ()) -> SuiteResults:
        """The results of all tests except `without`. `emit` receives each event when it happens. If
        the suite cannot run at all, each test ends in that error; if the tests are not known, the
        error is that of one test with the name of the program."""
        try:
            results = await self._run(emit, without)
        except AttemptError as error:
            info = ErrorInfo(kind=error.kind, message=error.sentence)
            names = [name for name in self.tests or () if name not in without]
            rows = [self.error_row(name, info) for name in names or [self.name]]
            for row in rows:
                emit(row)
            results = SuiteResults(tuple(rows), error=error)
        emit(SuiteEnded(self.suite.path))
        return results

    @abstractmethod
    async def _run(self, emit: Emit, without: Collection[str]) -> SuiteResults:
        """As `run`; AttemptError if the suite cannot run at all."""

    @abstractmethod
    async def sample(self, test: str, count: int) -> Sequence[SampleResult]:
        """Fresh samples of a test, which are not part of the first run. A sample that could not be
        scored has an error. AttemptError if the tree cannot be prepared."""

    @abstractmethod
    async def score(self, test: str, samples: Sequence[SampleResult]) -> Sequence[SampleResult]:
        """Stored samples of a test, scored by the evaluators of this suite. The agent is not
        called; samples without an answer and without an error are left out. AttemptError if the
        tree cannot be prepared for a program that scores."""

    async def compare(self, test: str, pair: Pair, number: int = 0) -> SampleResult:  # noqa: ARG002  # for subclasses
        """The answers of two samples of a test, compared by the pairwise evaluators of this suite:
        the `evaluator_results` of the sample. `number` counts comparisons of the same answers, from
        0. TypeError: the suite of a runner has no pairwise evaluator."""
        raise TypeError(f"{self.name} cannot compare the answers of {test}")

    @abstractmethod
    def error_row(self, test: str, error: ErrorInfo) -> TestResult:
        """The result of a test that did not run, by its id."""
