"""Where suites are read and run: head's tree and the base's, one pool and one set of connections
for both."""

import asyncio
import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from agentevals_action.baselines.base import Baseline, BaseTree
from agentevals_action.baselines.none import NoBaseline
from agentevals_action.baselines.rerun import Rerun
from agentevals_action.errors import AttemptError, InvalidInput, OutputError
from agentevals_action.execution.engine import Engine
from agentevals_action.execution.resample import Keys, Resampling, Side, is_certain
from agentevals_action.execution.runner import placed
from agentevals_action.model.comparison import BaselineInfo, ChangedFile
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.quarantine import Quarantines
from agentevals_action.model.result import SuiteRun, TestResult
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.reports import console
from agentevals_action.reports.console import Progress
from agentevals_action.results.jsonl import ResultsWriter, check_unchanged
from agentevals_action.results.summary import summarise
from agentevals_action.review.base_tree import Base
from agentevals_action.review.baseline_source import Places, baseline_for
from agentevals_action.settings import Settings
from agentevals_action.suites import checkout as wiring
from agentevals_action.suites.checkout import Checkout
from agentevals_action.suites.quarantine_file import read_quarantines
from agentevals_action.system.redaction import Redactor, redact_record
from agentevals_action.system.tree_files import output_errors

_HEAD, _BASE = "results.jsonl", "base.jsonl"


@dataclass(frozen=True)
class Bench:
    """One review's workshop. `suites` are all of head's tree, `folder` is the workspace; results go
    to `results.jsonl` (head) and `base.jsonl` in `report`."""

    checkout: Checkout
    suites: Sequence[Suite | BrokenSuite]
    settings: Settings
    folder: Path
    environ: Mapping[str, str]
    engine: Engine
    report: Path
    redactor: Redactor
    progress: Progress
    places: Places
    _ready: dict[Path, asyncio.Future[None]] = field(default_factory=dict)
    _seals: dict[str, bytes] = field(default_factory=dict)

    def refusals(self, suite: Suite) -> Sequence[Diagnostic]:
        """Variables that targets of its tests need and that are not set."""
        return self.engine.missing(suite)

    def base_suites(self, root: Path) -> Sequence[Suite | BrokenSuite]:
        """Every suite of the base's tree, none where the working directory is new; InvalidInput
        when they cannot be told."""
        if not (root / self.settings.working_directory).is_dir():
            return ()
        there = Checkout.at(root, self.settings, self.environ)
        return wiring.load_all(there, self.settings, wiring.suite_paths(there, self.settings), root)

    def baseline(
        self, base: Base, root: Path | None, suites: Sequence[Suite | BrokenSuite]
    ) -> Baseline:
        """Where the base's results come from."""
        if self.settings.baseline == "none":
            return NoBaseline(
                BaselineInfo(
                    "none",
                    wanted=False,
                    commit=base.sha,
                    commit_time=base.time,
                    reason="`baseline` is `none`",
                )
            )
        if base.sha is None or root is None:
            info = BaselineInfo(
                self.settings.baseline,
                wanted=bool(base.problem),
                reason=base.reason,
                problem=base.problem,
            )
            return NoBaseline(info)
        by_path = {suite.path: suite for suite in suites}
        fingerprint = self.engine.fingerprints.of
        info = BaselineInfo(
            self.settings.baseline, wanted=True, commit=base.sha, commit_time=base.time
        )
        tree = BaseTree(
            info, by_path, lambda suite: {test.id: fingerprint(suite, test) for test in suite.tests}
        )
        rerun = Rerun(
            replace(info, source="rerun"), root, self._prepare_base, self._run_base, by_path
        )
        return baseline_for(self.settings, tree, root, rerun, self.places)

    async def announce(self, suites: Sequence[Suite], sides: int) -> None:
        """The estimate, in the log."""
        if suites:
            console.remarks([await self.engine.estimate(suites, sides)], sys.stderr)

    async def run(self, suites: Sequence[Suite]) -> Sequence[SuiteRun]:
        """Runs suites of head, in its own tree."""
        refusal = None
        try:
            await self.engine.prepare(self.folder)
        except AttemptError as error:
            refusal = error
        return await self._run("head", suites, _HEAD, refusal)

    async def regrade(
        self, suite: Suite, base: Mapping[str, TestResult]
    ) -> Mapping[str, TestResult]:
        """The base's answers graded by head's evaluators."""
        runner = self.engine.runner
        async with asyncio.TaskGroup() as tasks:
            graded = {
                test.id: tasks.create_task(runner.regrade(suite, test, base[test.id]))
                for test in suite.tests
                if test.id in base
            }
        return {name: redact_record(task.result(), self.redactor) for name, task in graded.items()}

    def certain(self, suite: Suite) -> Set[str]:
        """The tests that answer and are graded the same each time."""
        return {test.id for test in suite.tests if is_certain(suite, test)}

    def sampler(
        self, keys: Keys, heads: Mapping[str, Suite], root: Path | None, bases: Mapping[str, Suite]
    ) -> Resampling:
        """Runs single tests again, and says how far that is; where base's results come from a
        store, its first samples are fresh ones too."""
        if keys:
            self.progress.again(len(keys), 0, 0)
        return Resampling(
            self.engine.runner,
            self.engine.fingerprints,
            self.redactor,
            keys,
            Side(heads, self.settings.samples),
            Side(bases if root else {}, self.settings.samples),
            lambda: self._prepared(root or self.folder),
            lambda settled, samples: self.progress.again(len(keys), settled, samples),
        )

    def keep(self, head: Sequence[SuiteRun], base: Sequence[SuiteRun], grown: bool) -> None:
        """Leaves both files of results as these runs have it, `grown` since they were written;
        OutputError when others changed one."""
        changed = None
        try:
            for name in (_HEAD, _BASE):
                check_unchanged(self.report / name, self._seals.get(name))
        except OutputError as error:
            changed = error  # whoever reads the report later must not read what others wrote
        if grown or changed:
            self._write_anew(head, base)
        if changed:
            raise changed

    def _write_anew(self, head: Sequence[SuiteRun], base: Sequence[SuiteRun]) -> None:
        for name, runs in ((_HEAD, head), (_BASE, base)):
            path = self.report / name
            with output_errors(path):
                path.unlink(missing_ok=True)  # or a link would be followed
            with ResultsWriter(path) as writer:
                for place, result in enumerate(result for run in runs for result in run.results):
                    writer.add(place, result)

    def quarantines(self, root: Path | None, by_base: bool) -> Quarantines:
        """What is in quarantine by head's tree and, with `by_base`, the base's (`root`, None where
        it could not be had)."""
        return read_quarantines(self.checkout.root, datetime.now(UTC).date(), root, by_base=by_base)

    def question_files(
        self, suite: Suite, changed: Sequence[ChangedFile]
    ) -> Mapping[str, Sequence[str]]:
        """Changed files that the tests' questions hold."""
        paths = {file.path for file in changed}
        if paths.isdisjoint(file.path for file in suite.files):
            return {}
        held = (
            (
                test.id,
                [
                    path
                    for path in self.engine.fingerprints.question_files(suite, test)
                    if path in paths
                ],
            )
            for test in suite.tests
        )
        return {name: files for name, files in held if files}

    async def close(self) -> None:
        """Frees connections."""
        await self.engine.close()

    async def _prepared(self, root: Path) -> None:
        """Makes a tree ready once, whoever asks."""
        if root not in self._ready:
            self._ready[root] = asyncio.ensure_future(self.engine.prepare(root))
        await self._ready[root]

    async def _prepare_base(self, root: Path) -> None:
        try:
            await self._prepared(root)
        except AttemptError as error:
            raise InvalidInput(f"for the base, {error}", error.hint) from error

    async def _run_base(self, suites: Sequence[Suite]) -> Sequence[SuiteRun]:
        return await self._run("base", suites, _BASE, None)

    async def _run(
        self, side: str, suites: Sequence[Suite], name: str, refusal: AttemptError | None
    ) -> Sequence[SuiteRun]:
        results: dict[str, list[tuple[int, TestResult]]] = {suite.path: [] for suite in suites}
        self.progress.expect(side, sum(suite.test_count for suite in suites))
        with ResultsWriter(self.report / name) as writer:

            def keep(index: int, suite: Suite, result: TestResult) -> None:
                clean = redact_record(result, self.redactor)
                writer.add(index, clean)
                results[suite.path].append((index, clean))
                self.engine.forecast.add(clean)
                self.progress.advance(side, clean)

            await self.engine.runner.run(placed(suites), keep, refusal)
        self._seals[name] = writer.seal()
        return [_suite_run(suite, results[suite.path]) for suite in suites]


def _suite_run(suite: Suite, results: list[tuple[int, TestResult]]) -> SuiteRun:
    ordered = tuple(result for _, result in sorted(results, key=lambda pair: pair[0]))
    return SuiteRun(suite.path, suite.name, ordered, summarise(suite.path, suite.name, ordered))
