"""The runs of head and of base, with one engine; their results are written to the report folder."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from agentevals_action.errors import AttemptError, InvalidInput
from agentevals_action.execution.engine import Engine
from agentevals_action.execution.preparation import LogSection
from agentevals_action.execution.resample import Resampler
from agentevals_action.execution.runner import indexed
from agentevals_action.model.result import SuiteRun, TestResult
from agentevals_action.model.suite import Suite
from agentevals_action.reports.progress import Progress
from agentevals_action.results.jsonl import ResultsWriter, encode_row
from agentevals_action.results.summary import summarise
from agentevals_action.review.comparison.compare_runs import Runs
from agentevals_action.review.comparison.decision_rule import Evidences, Suspect, to_sample
from agentevals_action.review.confirmation import confirm
from agentevals_action.review.workspace import BASE_RESULTS, HEAD_RESULTS, Workspace
from agentevals_action.settings import Settings
from agentevals_action.system.redaction import Redactor, redact_record
from agentevals_action.system.tree_files import output_errors


@dataclass(frozen=True)
class Sides:
    """Runs suites of head and of base. `base_root` is the tree of base, `setup_log` takes the
    output of `setup`."""

    engine: Engine
    workspace: Workspace
    base_root: Path | None
    redactor: Redactor
    progress: Progress
    setup_log: LogSection
    #: The results that each results file contains.
    _written: dict[str, Sequence[TestResult]] = field(default_factory=dict)

    async def run_head(self, suites: Mapping[str, Suite]) -> dict[str, SuiteRun]:
        """Runs suites in the workspace; if it could not be prepared, their tests are errors."""
        error = None
        try:
            await self.engine.prepare(self.workspace.folder, self.setup_log)
        except AttemptError as refused:
            error = refused
        runs = await self._run("head", list(suites.values()), HEAD_RESULTS, error)
        return {run.path: run for run in runs}

    async def run_base(self, suites: Sequence[Suite]) -> Sequence[SuiteRun]:
        """Runs suites of base, whose tree is prepared."""
        return await self._run("base", suites, BASE_RESULTS)

    async def prepare_base(self, root: Path) -> None:
        """Prepares the tree of base. Raises InvalidInput."""
        try:
            await self.engine.prepare(root, self.setup_log)
        except AttemptError as error:
            raise InvalidInput(f"for the base, {error}", error.hint) from error

    async def _run(
        self, side: str, suites: Sequence[Suite], name: str, error: AttemptError | None = None
    ) -> Sequence[SuiteRun]:
        results: dict[int, tuple[str, TestResult]] = {}
        self.progress.expect(side, sum(suite.test_count for suite in suites))
        with ResultsWriter(self.workspace.report / name) as writer:

            def on_result(index: int, suite: Suite, result: TestResult) -> None:
                clean = redact_record(result, self.redactor)
                writer.add(index, clean)
                results[index] = suite.path, clean
                self.engine.count(clean)
                self.progress.advance(side, clean)

            await self.engine.runner.run(indexed(suites), on_result, error)
        by_suite: dict[str, list[TestResult]] = {suite.path: [] for suite in suites}
        for _, (path, result) in sorted(results.items(), key=lambda item: item[0]):
            by_suite[path].append(result)
        self._written[name] = [result for of_suite in by_suite.values() for result in of_suite]
        return [
            SuiteRun(
                suite.path,
                suite.name,
                tuple(by_suite[suite.path]),
                summarise(suite.path, suite.name, by_suite[suite.path]),
            )
            for suite in suites
        ]

    async def regrade(
        self, suites: Mapping[str, Suite], stored: Mapping[str, Mapping[str, TestResult]]
    ) -> dict[str, dict[str, TestResult]]:
        """The stored results of base, by suite and test id, scored by the evaluators of head's
        suites."""
        regrade, regraded = self.engine.runner.regrade, {}
        for path, results in stored.items():
            tests = [test for test in suites[path].tests if test.id in results]
            scored = await asyncio.gather(
                *(regrade(suites[path], test, results[test.id]) for test in tests)
            )
            regraded[path] = {one.eval_id: redact_record(one, self.redactor) for one in scored}
        return regraded

    async def confirm(
        self,
        suspects: Sequence[Suspect],
        base_results: Mapping[str, Sequence[TestResult]],
        head: Mapping[str, Suite],
        base: Mapping[str, Suite],
        settings: Settings,
    ) -> Evidences:
        """The evidence about the suspects from fresh samples. `head` and `base` are the suites of
        both trees by their path on head."""
        keys = frozenset(suspect.key for suspect in to_sample(suspects, settings.confirm))
        root = self.base_root
        counts = {"settled": 0, "samples": 0}

        def report(word: str, number: int) -> None:
            counts[word] += number
            self.progress.confirm(len(keys), counts["settled"], counts["samples"])

        async def prepare_base() -> None:
            await self.engine.prepare(root or self.workspace.folder, self.setup_log)

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
        return await confirm(
            suspects,
            base_results,
            settings.confirm,
            settings.alpha,
            resampler,
            resampler.on_base,
            lambda: report("settled", 1),
        )

    def write_results(self, runs: Runs) -> tuple[str, ...]:
        """Writes the results files again if the confirmation added samples, or if another program
        changed them; a notice for each changed file. The decision depends on the results in memory
        only."""
        sides = {HEAD_RESULTS: runs.head, BASE_RESULTS: runs.base.suites}
        changed = [name for name in sides if self._is_changed(name)]
        for name, of_side in sides.items() if changed or runs.evidence else ():
            path = self.workspace.report / name
            with output_errors(path):
                path.unlink(missing_ok=True)  # a link must not be followed
            with ResultsWriter(path) as writer:
                results = (result for run in of_side.values() for result in run.results)
                for index, result in enumerate(results):
                    writer.add(index, result)
        return tuple(
            f"the results file {name} was changed by another program while the tests ran, "
            "and was written again: see which agent, hook or judge writes there"
            for name in changed
        )

    def _is_changed(self, name: str) -> bool:
        path, results = self.workspace.report / name, self._written.get(name)
        if results is None or path.is_symlink():
            return path.is_symlink() or path.exists()
        try:
            with path.open("rb") as file:
                rows = (encode_row(result) + b"\n" for result in results)
                return any(line != row for line, row in zip_longest(file, rows))
        except OSError:
            return True
