"""The executor of a suite of another runner, for a first run and for suspects again, and the
executors of all suites of a run."""

import asyncio
import os
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import ValidationError

from agentevals_action.errors import AttemptError
from agentevals_action.execution.engine import Engine
from agentevals_action.execution.engine_executor import EngineExecutor
from agentevals_action.execution.executor import Emit, SuiteExecutor, SuiteResults, SuiteStarted
from agentevals_action.formatting import counted, list_paths
from agentevals_action.model.result import ErrorInfo, SampleResult, TestResult
from agentevals_action.model.runner import Runner
from agentevals_action.model.suite import Suite
from agentevals_action.runners import commands
from agentevals_action.runners.formats import FORMATS
from agentevals_action.runners.formats.base import MAX_ROWS, ResultsError, Row, Selection, read_file
from agentevals_action.runners.rows import (
    build_result,
    build_sample,
    error_row,
    missing_sample,
    rows_by_test,
)
from agentevals_action.system import process
from agentevals_action.system.child_environment import scrub
from agentevals_action.system.isolation import TRAVERSABLE
from agentevals_action.system.program import Program, child_error
from agentevals_action.system.redaction import redact, without_secrets
from agentevals_action.system.resources import exhausted
from agentevals_action.validation.field_errors import invalid_json

#: What to do if a runner fails, and all tests that it reports pass.
_OTHER_FAILURE = (
    "see in its output what failed; `program: python3 -m pytest --no-cov` in the entry turns off a "
    "threshold of coverage"
)


class Executors:
    """The executors of a run. A suite has one in each tree, and one for each of its arms on head:
    fresh samples follow those of its first run."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._executors: dict[tuple[Path, str, str], SuiteExecutor] = {}
        self._turns: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)

    def of(self, suite: Suite) -> SuiteExecutor:
        """The executor of a suite in its tree."""
        if suite.key not in self._executors:
            self._executors[suite.key] = self._executor(suite)
        return self._executors[suite.key]

    def _executor(self, suite: Suite) -> SuiteExecutor:
        if suite.runner is None:
            return EngineExecutor(suite, self._engine)
        folder = self._engine.scratch.resolve() / f"runner-{len(self._executors)}"
        return RunnerExecutor(suite, suite.runner, self._engine, folder, self._turns[suite.root])


class RunnerExecutor(SuiteExecutor):
    """Runs a suite with the program of its `runner`. `folder` gets its files; the suites of a tree
    run one after another, each in its `turn`: a runner has a concurrency of its own."""

    scores_answers = False
    tests = None

    def __init__(
        self, suite: Suite, runner: Runner, engine: Engine, folder: Path, turn: asyncio.Lock
    ) -> None:
        super().__init__(suite)
        self._runner, self._engine, self._folder, self._turn = runner, engine, folder, turn
        self._format = FORMATS[runner.results]()
        self._starts = 0
        #: A row of each test of the first run, by the test's id, and the ids by the rows' keys.
        self._first_rows: dict[str, Row] = {}
        self._ids: dict[str, str] = {}
        self._batches = _SampleBatches(self)

    @property
    def name(self) -> str:
        """The name of the runner."""
        return self._runner.name

    async def _run(self, emit: Emit, without: Collection[str]) -> SuiteResults:  # noqa: ARG002  # of the base class
        """Runs all tests: a runner cannot leave out some. If it ends in an error, it has no
        results, whatever it wrote."""
        async with self._turn:
            emit(SuiteStarted(self.suite.path, None, self.name))
            if self._engine.settings.cache == "replay":
                problem = "nothing of it is replayed or recorded"
                self._engine.note(f"{self.suite.path}: {problem}: `{self.name}` asks the agent")
            await self._engine.prepare(self.suite.root)
            words, _ = commands.split_commands(self._runner)
            rows = await self._rows(words, Selection(), self._engine.settings.samples)
        results = self._results(rows)
        for row in results.rows:
            emit(row)
        return results

    def _results(self, by_test: Mapping[str, Sequence[Row]]) -> SuiteResults:
        """The results of the first run. AttemptError if no test is scored."""
        described = self._engine.fingerprints.of_runner(self.suite)
        results: list[TestResult] = []
        skipped: dict[str, str] = {}
        for name, rows in by_test.items():
            self._first_rows[name] = row = rows[0]
            if row.key:
                self._ids[row.key] = row.id
            fingerprint = described.fingerprint(
                row.id, row.asked, row.graded, has_functions=self._format.has_functions
            )
            result = build_result(
                self.suite, name, rows, self._engine.settings.samples, fingerprint
            )
            if result:
                results.append(without_secrets(result))
            else:
                skipped[name] = redact(rows[0].skipped)
        path, reason = self.suite.path, next(iter(skipped.values()), "")
        if skipped:
            number = counted(len(skipped), "test", "not scored")
            self._engine.note(f"{path}: {number}, {list_paths(list(skipped))}: {reason}")
        if not results:
            problem = f"`{self.name}` scored no test: {reason}"
            advice = f"exclude it (`!{path}` in `suites`) if it has nothing to score"
            raise AttemptError("runner", problem, advice)
        for notice in dict.fromkeys(row.notice for rows in by_test.values() for row in rows):
            if notice:
                self._engine.note(f"{path}: {notice}")
        return SuiteResults(tuple(results), skipped)

    async def sample(self, test: str, count: int) -> Sequence[SampleResult]:
        """Fresh samples of a test, together with other tests that wait for some."""
        return await self._batches.take(test, count)

    async def score(self, test: str, samples: Sequence[SampleResult]) -> Sequence[SampleResult]:  # noqa: ARG002  # of the base class
        """TypeError: a runner cannot score answers."""
        raise TypeError(f"{self.name} cannot score the answers of {test}")

    def error_row(self, test: str, error: ErrorInfo) -> TestResult:
        """The result of a test that did not run."""
        return error_row(self.suite, test, error)

    async def run_again(self, wanted: Mapping[str, int]) -> Mapping[str, Sequence[SampleResult]]:
        """The `wanted` number of fresh samples of each test, by id: one start for each sample, or
        for all if the command takes their number. A sample that was not taken is an error."""
        _, words = commands.split_commands(self._runner)
        most = max(wanted.values())
        takes_samples = any(commands.SAMPLES in word for word in words)
        fresh: dict[str, list[SampleResult]] = {name: [] for name in wanted}
        for number in [most] if takes_samples else range(1, most + 1):
            names = [name for name in wanted if takes_samples or wanted[name] >= number]
            size = most if takes_samples else 1
            try:
                rows = await self._selected(words, names, size)
                samples = {name: self._fresh(name, rows.get(name, ()), size) for name in names}
            except AttemptError as error:
                info = ErrorInfo(kind=error.kind, message=error.sentence)
                samples = {name: [SampleResult(error=info)] * size for name in names}
            for name in names:
                fresh[name] += samples[name]
        return without_secrets(fresh)

    def _fresh(self, name: str, rows: Sequence[Row], size: int) -> list[SampleResult]:
        is_gate = self._runner.requires(name)
        scored = [row for row in rows if row.error or not row.skipped]
        samples = [build_sample(row, self._runner, is_gate=is_gate) for row in scored]
        return (samples + [missing_sample(self._runner)] * size)[:size]

    async def _selected(
        self, words: Sequence[str], names: Sequence[str], samples: int
    ) -> Mapping[str, Sequence[Row]]:
        """The rows of these tests, run again. If a test has no row of a first run, because stored
        results stood for it, or shares its id with others, all tests run."""
        await self._engine.prepare(self.suite.root)
        firsts = [row for name in names if (row := self._first_rows.get(name)) and row.id == name]
        if len(firsts) < len(names):
            words, _ = commands.split_commands(self._runner)
        if not any(commands.SELECTION in word for word in words):
            return await self._rows(words, Selection(), samples)
        selections = self._format.select(firsts, self.suite)
        if not selections:
            words, _ = commands.split_commands(self._runner)
        rows: dict[str, Sequence[Row]] = {}
        for selection in selections or (Selection(),):
            rows |= await self._rows(words, selection, samples)
        return rows

    async def _rows(
        self, words: Sequence[str], selection: Selection, samples: int
    ) -> Mapping[str, Sequence[Row]]:
        """The rows by test of one start for all samples, or one for each sample. AttemptError."""
        if any(commands.SAMPLES in word for word in words):
            return rows_by_test(await self._start(words, selection, samples), samples)
        by_test: defaultdict[str, list[Row]] = defaultdict(list)
        for _ in range(samples):
            rows = await self._start(words, selection, 1)
            for name, rows_of_test in rows_by_test(rows, 1).items():
                by_test[name] += rows_of_test
        return by_test

    async def _start(
        self, words: Sequence[str], selection: Selection, samples: int
    ) -> Sequence[Row]:
        """Starts the runner once; its rows. AttemptError, also if the machine has no disk space or
        no open file left."""
        self._engine.budget.check()
        self._starts += 1
        try:
            rows = await self._run_program(words, selection, samples)
        except OSError as error:
            if cause := exhausted(error):
                raise AttemptError("resources", str(cause), cause.hint) from error
            raise
        for row in rows:
            self._engine.budget.count(self._runner.name, row.usage.cost_usd)
        return [replace(row, id=self._ids.get(row.key, row.id)) for row in rows]

    async def _run_program(
        self, words: Sequence[str], selection: Selection, samples: int
    ) -> Sequence[Row]:
        results, selected = self._make_folder(f"results-{self._starts}"), None
        values = {
            commands.SUITE: self._format.target(self.suite),
            commands.SAMPLES: str(samples),
            commands.RESULTS: str(results),
            "{STATE}": str(self._make_folder("state")),
        }
        if selection.text is None:
            selected = selection.words
        else:
            file = self._folder / f"selection-{self._starts}.json"
            file.write_text(selection.text, encoding="utf-8")
            values[commands.SELECTION] = str(file)
        program = self._program(commands.filled(words, values, selected), values, results)
        name = f"`{self._runner.name}`"
        try:
            done = await process.run(program, timeout=self._runner.timeout_seconds)
        except OSError as error:
            raise program.start_error("runner", name, error) from None
        for file in results.glob("imports-*"):
            sentence = read_file(results, file.name).decode("utf-8", "replace")
            raise AttemptError("runner", f"{name}: {redact(sentence)}")
        problem = ""
        if done.timed_out or done.returncode not in self._format.exit_codes:
            problem = f" {done.failure}"
        rows: Sequence[Row] = ()
        # Without any file, the end of the program says more.
        if not problem or any(results.glob("*")):
            try:
                rows = await asyncio.to_thread(self._read, results)
            except ResultsError as error:
                problem += f": {redact(str(error))}"
        hint, all_pass = program.hint, all(row.passed or row.skipped for row in rows)
        if not problem and done.returncode in self._format.failed_codes and all_pass:
            problem, hint = f" {done.failure}, and no test that it reports failed", _OTHER_FAILURE
        if problem:
            output = f"{done.stdout.strip()}\n{done.stderr.strip()}"
            raise child_error("runner", f"{name}{problem}", output, hint)
        return rows

    def _read(self, results: Path) -> Sequence[Row]:
        """The rows in a folder of results, at least one. ResultsError."""
        try:
            rows = self._format.read(results, self.suite)
        except ValidationError as error:
            problem = f"its results are not as {self._format.version} has them"
            raise ResultsError(f"{problem}: {invalid_json(error)}") from None
        if not rows:
            raise ResultsError("it ran no test")
        if len(rows) > MAX_ROWS:
            raise ResultsError(f"it reported more than {MAX_ROWS:,} samples")
        return rows

    def _program(self, words: Sequence[str], values: Mapping[str, str], results: Path) -> Program:
        """The program with the variables that its entry names, as far as the workflow passes them
        on. AttemptError."""
        children, root, wanted = self._engine.children, self.suite.root, self._runner.env
        if missing := [name for name in wanted if not children.allowed.get(name)]:
            problem = f"the runner `{self._runner.name}` needs {', '.join(missing)}"
            advice = "name it in the input `env`, and give it a value in the job's `env`"
            raise AttemptError("configuration", f"{problem}, which is not passed on", advice)
        variables = children.workspace(root) | {
            name: commands.filled([value], values)[0]
            for name, value in self._format.variables.items()
        }
        program = children.program(words, root, children.isolation.choose_user(root), variables)
        # Of what the workflow passes on: what its entry names, and what every program sees.
        passed, _ = scrub(children.allowed, wanted)
        withheld = children.allowed.keys() - passed.keys()
        environment = program.environment.items()
        program = replace(
            program, environment={name: text for name, text in environment if name not in withheld}
        )
        return children.with_packages(program, root, root, root / self.suite.path, results)

    def _make_folder(self, name: str) -> Path:
        """A folder that only the programs of this side can read and write.

        Attack: a runner that could write the folder above would make a link of the next folder or
        selection, by which the action gives it a file of its own, or writes into one."""
        folder = self._folder / name
        if not folder.exists():
            self._folder.mkdir(exist_ok=True)
            self._folder.chmod(TRAVERSABLE)
            folder.mkdir(0o700)
            if user := self._engine.children.isolation.choose_user(self.suite.root):
                os.chown(folder, user.uid, user.gid)
        return folder


@dataclass
class _SampleBatches:
    """The fresh samples of one suite on one side. Tests that ask for samples at the same time share
    the starts; samples that nobody asked for are kept for the next time."""

    executor: RunnerExecutor
    _wanted: dict[str, int] = field(default_factory=dict)
    _ready: defaultdict[str, list[SampleResult]] = field(default_factory=lambda: defaultdict(list))
    _next: asyncio.Task[None] | None = None
    _last: asyncio.Task[None] | None = None

    async def take(self, name: str, count: int) -> Sequence[SampleResult]:
        """So many samples of a test."""
        missing = count - len(self._ready[name])
        if missing > 0:
            self._wanted[name] = missing
            if self._next is None:
                self._next = asyncio.create_task(self._run())
            await self._next
        ready = self._ready[name]
        taken, self._ready[name] = ready[:count], ready[count:]
        return taken

    async def _run(self) -> None:
        # All tests that ask in the same turn of the loop have done so when this task begins.
        previous, self._last = self._last, self._next
        if previous:
            await asyncio.wait([previous])
        wanted, self._wanted, self._next = self._wanted, {}, None
        for name, samples in (await self.executor.run_again(wanted)).items():
            self._ready[name] += samples
