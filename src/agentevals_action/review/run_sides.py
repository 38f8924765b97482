"""The runs of head and of base, with one engine. Their results are in memory until the end, and
then written to the report folder."""

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentevals_action.errors import AttemptError, InvalidInput, OutputError
from agentevals_action.execution.engine import Engine
from agentevals_action.execution.execute import Event, Started, execute
from agentevals_action.execution.resample import Resampler
from agentevals_action.model.comparison import NOTHING, Evidence, Finding
from agentevals_action.model.edits import SuiteEdits
from agentevals_action.model.result import ErrorInfo, SampleResult, SuiteRun, TestResult
from agentevals_action.model.suite import Suite
from agentevals_action.reports.progress import Progress
from agentevals_action.results.build import without_cost
from agentevals_action.results.jsonl import encode_row
from agentevals_action.results.summary import suite_run
from agentevals_action.review.change.workspace import BASE_RESULTS, HEAD_RESULTS, ReviewWorkspace
from agentevals_action.review.comparison import compare
from agentevals_action.review.comparison.compare_runs import Runs
from agentevals_action.review.comparison.decision_rule import Evidences, Key, Suspect, to_sample
from agentevals_action.review.confirmation import confirm, sample_failures
from agentevals_action.settings import Settings
from agentevals_action.system.redaction import Redactor, redact_record

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WrittenResults:
    """How the results files were written: `notices` for the reader, and a sentence in `problems`
    for each file that could not be written."""

    notices: tuple[str, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Sides:
    """Runs suites of head and of base. `base_root` is the tree of base."""

    engine: Engine
    workspace: ReviewWorkspace
    base_root: Path | None
    redactor: Redactor
    progress: Progress
    #: The results of each results file by suite and test, in suite order; None until there is one.
    _results: dict[str, dict[Key, TestResult | None]] = field(default_factory=dict)

    async def run_head(self, suites: Mapping[str, Suite]) -> dict[str, SuiteRun]:
        """Runs suites in the workspace; if it could not be prepared, their tests are errors."""
        runs = await self._run("head", list(suites.values()), HEAD_RESULTS)
        return {run.path: run for run in runs}

    async def _prepare_head(self) -> AttemptError | None:
        """Prepares the tree of head, once; the error if that fails."""
        try:
            await self.engine.prepare(self.workspace.folder)
        except AttemptError as error:
            return error
        return None

    async def run_base(self, suites: Sequence[Suite]) -> Sequence[SuiteRun]:
        """Runs suites of base, whose tree is prepared."""
        return await self._run("base", suites, BASE_RESULTS)

    async def prepare_base(self, root: Path) -> None:
        """Prepares the tree of base. Raises InvalidInput."""
        try:
            await self.engine.prepare(root)
        except AttemptError as error:
            raise InvalidInput(f"for the base, {error}", error.hint) from error

    async def _run(self, side: str, suites: Sequence[Suite], name: str) -> Sequence[SuiteRun]:
        keys = ((suite.path, test.id) for suite in suites for test in suite.tests)
        finished = self._results[name] = dict.fromkeys(keys)
        self.progress.expect(side, {suite.path: len(suite.tests) for suite in suites})

        def on_event(event: Event) -> None:
            if isinstance(event, Started):
                self.progress.start(side, event.suite, event.test)
            else:
                finished[event.suite.path, event.test.id] = event.result
                self.progress.advance(side, event.result)

        results = await execute(suites, self.engine, on_event)
        by_suite: dict[str, list[TestResult]] = {suite.path: [] for suite in suites}
        for result in results:
            by_suite[result.eval_path].append(result)
        return [suite_run(suite.path, suite.name, by_suite[suite.path]) for suite in suites]

    async def regrade(
        self, suites: Mapping[str, Suite], stored: Mapping[str, Mapping[str, TestResult]]
    ) -> dict[str, dict[str, TestResult]]:
        """Results of base, by suite and test id, scored by the evaluators of head's suites. The
        tree of head may not be prepared yet: shards ran its tests on other machines."""
        error = await self._prepare_head() if stored else None
        if error is None:
            return await self._regrade(suites, stored)
        info = ErrorInfo(kind=error.kind, message=error.sentence)
        return {
            path: {name: compare.unscored(result, info) for name, result in results.items()}
            for path, results in stored.items()
        }

    async def _regrade(
        self, suites: Mapping[str, Suite], stored: Mapping[str, Mapping[str, TestResult]]
    ) -> dict[str, dict[str, TestResult]]:
        """Results of the other side, by suite and test id, scored by the evaluators of these
        suites."""
        regrade, regraded = self.engine.runner.regrade, {}
        for path, results in stored.items():
            tests = [test for test in suites[path].tests if test.id in results]
            scored = await asyncio.gather(
                *(regrade(suites[path], test, results[test.id]) for test in tests)
            )
            regraded[path] = {one.eval_id: redact_record(one, self.redactor) for one in scored}
        return regraded

    async def score_by_base(
        self,
        suites: Mapping[str, Suite],
        results: Mapping[str, Mapping[str, TestResult]],
        edits: Mapping[str, SuiteEdits],
    ) -> dict[str, dict[str, TestResult]]:
        """Results of head, by suite and test id, scored by the evaluators of base's suites (by
        their path on head), with the cost of that alone; errors for those that cannot be."""
        scored: dict[str, dict[str, TestResult]] = {path: {} for path in results}
        stored: dict[str, dict[str, TestResult]] = {path: {} for path in results}
        by_program = {
            path: edits[path].by_program.intersection(of_suite)
            for path, of_suite in results.items()
        }
        problem = await self._prepare_for_programs() if any(by_program.values()) else None
        for path, of_suite in results.items():
            for test, result in ((test, without_cost(one)) for test, one in of_suite.items()):
                error = None
                if test in by_program[path]:
                    error = compare.without_workspace(result) or problem
                if error:
                    scored[path][test] = compare.unscored(result, error)
                else:
                    stored[path][test] = result
        regraded = await self._regrade(suites, stored)
        return {path: scored[path] | regraded[path] for path in results}

    async def _prepare_for_programs(self) -> ErrorInfo | None:
        """Prepares the tree of base for programs that score; the error if that fails."""
        try:
            await self.prepare_base(self.base_root or self.workspace.folder)
        except InvalidInput as error:
            return ErrorInfo(kind="prepare", message=error.sentence)
        return None

    async def confirm(
        self,
        suspects: Sequence[Suspect],
        failing: Collection[Key],
        base_results: Mapping[str, Sequence[TestResult]],
        head: Mapping[str, Suite],
        base: Mapping[str, Suite],
        settings: Settings,
    ) -> tuple[Evidences, Mapping[Key, Sequence[SampleResult]]]:
        """The evidence about the suspects from fresh samples, and the fresh samples of `failing`
        tests that are no regression. `head` and `base` are the suites of both trees by their path
        on head."""
        keys = {*failing, *(suspect.key for suspect in to_sample(suspects, settings.confirm))}
        if keys and (error := await self._prepare_head()):
            failed = Evidence(Finding.ERROR, NOTHING, NOTHING, reason=error.sentence)
            return {suspect.key: failed for suspect in suspects}, {}
        root = self.base_root
        counts = {"settled": 0, "samples": 0}

        def report(word: str, number: int) -> None:
            counts[word] += number
            self.progress.confirm(len(keys), counts["settled"], counts["samples"])

        async def prepare_base() -> None:
            await self.engine.prepare(root or self.workspace.folder)

        if keys:
            report("settled", 0)
        resampler = Resampler(
            self.engine,
            self.redactor,
            keys,
            head,
            base if root else {},
            settings.samples,
            prepare_base,
            lambda number: report("samples", number),
        )
        evidence = await confirm(
            suspects,
            base_results,
            settings.confirm,
            settings.alpha,
            resampler,
            resampler.on_base,
            lambda: report("settled", 1),
        )
        open_cases = {
            key: evidence[key].head_samples if key in evidence else ()
            for key in failing
            if key not in evidence
            or evidence[key].finding not in (Finding.REGRESSED, Finding.ERROR)
        }
        sampled = await sample_failures(
            open_cases, settings.confirm, resampler, lambda: report("settled", 1)
        )
        return evidence, sampled

    def write_results(self, runs: Runs) -> WrittenResults:
        """Writes the results files. Nothing is read from them: a file that another program put
        there is replaced, and a notice states it."""
        sides = {HEAD_RESULTS: runs.head, BASE_RESULTS: runs.base.suites}
        foreign = [name for name in sides if self.workspace.output.contains(name)]
        problems = [
            self._write(name, (result for run in of_side.values() for result in run.results))
            for name, of_side in sides.items()
        ]
        return WrittenResults(
            tuple(
                f"another program wrote `{name}` into the report folder while the tests ran; the "
                "action replaced it: see which agent, hook or judge writes there"
                for name in foreign
            ),
            tuple(filter(None, problems)),
        )

    def write_finished(self) -> None:
        """Writes the results of the tests that are finished, for a run that a signal ends."""
        for name in self._results:
            if problem := self._write(name, self.finished(name)):
                log.warning("%s", problem)

    def finished(self, name: str) -> Iterator[TestResult]:
        """The results so far of a results file, in suite order."""
        return filter(None, self._results.get(name, {}).values())

    def _write(self, name: str, results: Iterable[TestResult]) -> str:
        """Writes a results file; gives the reason if that is not possible."""
        try:
            self.workspace.output.write(name, (encode_row(result) + b"\n" for result in results))
        except OutputError as error:
            return error.sentence
        return ""
