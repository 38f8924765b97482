"""Runs the tests of head and of base with one engine, and takes the fresh samples of suspects. All
results are in memory until the end."""

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from agentevals_action.baselines.base import FoundSuites, with_rerun
from agentevals_action.errors import AttemptError, OutputError
from agentevals_action.execution.engine import Engine
from agentevals_action.execution.resample import Resampler, is_deterministic
from agentevals_action.execution.runner import Event, Started
from agentevals_action.model.baseline import BaseResults
from agentevals_action.model.comparison import Finding
from agentevals_action.model.result import Key, TestResult
from agentevals_action.model.run import Policy
from agentevals_action.model.suite import Suite
from agentevals_action.reports.progress import Progress
from agentevals_action.results.build import extended
from agentevals_action.results.jsonl import ResultsWriter, encode_row
from agentevals_action.results.run_folder import BASE_RESULTS, HEAD_RESULTS
from agentevals_action.results.scoring import MIN_MAJORITY
from agentevals_action.review.change.workspace import ReviewWorkspace
from agentevals_action.review.comparison.compare import as_head_scores, find_suspects
from agentevals_action.review.comparison.decision_rule import (
    ConfirmationPlan,
    FreshSamples,
    Suspect,
    assess,
    priors_of,
)
from agentevals_action.review.confirmation import confirm, sample_failures
from agentevals_action.review.rescoring import Rows
from agentevals_action.system.files.tree_files import write_file

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HeadAndBase:
    """Runs suites of head and of base, which are by their path on head."""

    engine: Engine
    workspace: ReviewWorkspace
    progress: Progress
    head: Mapping[str, Suite]
    base: Mapping[str, Suite]
    #: The results of each results file by suite and test, in suite order; None until there is one.
    _results: dict[str, dict[Key, TestResult | None]] = field(default_factory=dict)

    async def run_head(self, kept: Rows, stream: Path | None) -> Rows:
        """Runs the suites of head; if its tree cannot be prepared, their tests are errors. The
        tests of the results that are `kept` do not run. Each result is added to the file `stream`
        at once."""
        suites = tuple(self.head.values())
        side = "tests" if stream else "head"  # `run` has one side
        await self._run(side, suites, HEAD_RESULTS, kept, stream)
        rows = self._results[HEAD_RESULTS].items()
        return {key: row for key, row in rows if row}

    async def run_base(self, found: FoundSuites) -> BaseResults:
        """Runs the suites that no source has on base, and adds their results."""
        suites = {path: self.base[path] for path in found.left if path in self.base}
        if not suites or self.workspace.settings.baseline not in ("auto", "rerun"):
            return with_rerun(found, {})
        try:
            await self.engine.prepare(next(iter(suites.values())).root)
        except AttemptError as error:
            return with_rerun(found, {}, f"for the base, {error.sentence}")
        by_suite: dict[str, list[TestResult]] = {suite.path: [] for suite in suites.values()}
        for result in await self._run("base", tuple(suites.values()), BASE_RESULTS):
            by_suite[result.eval_path].append(result)
        return with_rerun(found, {path: by_suite[suite.path] for path, suite in suites.items()})

    async def _run(
        self,
        side: str,
        suites: Sequence[Suite],
        name: str,
        kept: Rows = MappingProxyType({}),
        stream: Path | None = None,
    ) -> Sequence[TestResult]:
        keys = [(suite.path, test.id) for suite in suites for test in suite.tests]
        indices = {key: index for index, key in enumerate(keys)}
        finished = self._results[name] = {key: kept.get(key) for key in keys}
        if kept:
            suites = [_without(suite, kept) for suite in suites]
        self.progress.expect(side, sum(len(suite.tests) for suite in suites))

        def on_event(event: Event) -> None:
            if isinstance(event, Started):
                self.progress.start(side, event.suite.path, event.test.id)
                return
            key = (event.suite.path, event.test.id)
            finished[key] = event.result
            if writer:
                with suppress(OutputError):  # all rows are written at the end
                    writer.add(indices[key], event.result)
            self.progress.advance(side, event.result)

        done = {indices[key]: row for key, row in finished.items() if row}
        writer = ResultsWriter(stream, done) if stream else None
        try:
            return await self.engine.execute(suites, on_event)
        finally:
            if writer:
                with suppress(OutputError):  # as above
                    writer.close()

    def write_finished(self) -> None:
        """Writes the results of the tests that are finished, for a run that a signal ends."""
        for name, results in self._results.items():
            rows = (encode_row(result) + b"\n" for result in filter(None, results.values()))
            try:
                write_file(self.workspace.output / name, rows)
            except OutputError as error:
                log.warning("%s", error.sentence)

    async def confirm(self, head: Rows, base: Rows, policy: Policy) -> tuple[Rows, Rows]:
        """The results of both sides with the fresh samples of the confirmation: those of suspects,
        and those of tests that block by themselves. A shard takes all samples that may be
        needed, because it does not know the number of all suspects."""
        suspects, failing = self._to_sample(head, base, policy)
        keys = {*failing, *(suspect.key for suspect in suspects)}
        if not keys:
            return head, base
        counts = {"settled": 0, "samples": 0}

        def report(word: str, number: int) -> None:
            counts[word] += number
            self.progress.confirm(len(keys), counts["settled"], counts["samples"])

        report("settled", 0)
        resampler = Resampler(
            self.engine,
            keys,
            self.head,
            self.base,
            self.workspace.settings.samples,
            lambda number: report("samples", number),
        )
        is_shard = self.workspace.settings.shard is not None
        plan = ConfirmationPlan(
            policy.confirm, None if is_shard else policy.alpha / max(len(suspects), 1)
        )
        priors = priors_of(
            {path: list(map(as_head_scores, rows)) for path, rows in _by_suite(base).items()}
        )
        fresh = await confirm(
            suspects, plan, priors, resampler, resampler.on_base, lambda: report("settled", 1)
        )
        known = {each.key: assess(each, fresh[each.key], plan, priors).finding for each in suspects}
        open_cases = {
            key: fresh[key].head if key in fresh else ()
            for key in failing
            if known.get(key) not in (Finding.REGRESSED, Finding.ERROR)
        }
        sampled = await sample_failures(
            open_cases, policy.confirm, resampler, lambda: report("settled", 1)
        )
        more = {
            key: replace(fresh.get(key, FreshSamples()), head=tuple(taken))
            for key, taken in sampled.items()
        }
        return _with_fresh(head, base, {**fresh, **more})

    def _to_sample(
        self, head: Rows, base: Rows, policy: Policy
    ) -> tuple[Sequence[Suspect], Sequence[Key]]:
        """The suspects, and the tests that block by themselves, about which fresh samples reveal
        something."""
        if not policy.confirm:
            return (), ()
        on_base = _by_suite(base)
        suspects = [
            suspect
            for path, rows in _by_suite(head).items()
            for suspect in find_suspects(path, rows, on_base.get(path, ()))
        ]
        blocking = _blocking(head, policy.fail_on)
        keys = (*(suspect.key for suspect in suspects), *blocking)
        certain = self._deterministic({path for path, _ in keys})
        return (
            [suspect for suspect in suspects if suspect.key not in certain],
            [key for key in blocking if key not in certain],
        )

    def _deterministic(self, paths: Collection[str]) -> frozenset[Key]:
        """The deterministic tests of these suites: in a replay, all."""
        is_replay = self.workspace.settings.cache == "replay"
        return frozenset(
            (path, test.id)
            for path in paths
            for test in self.head[path].tests
            if is_replay or is_deterministic(self.head[path], test)
        )


def base_rows(base: BaseResults, suites: Mapping[str, Suite]) -> Rows:
    """The results of base, of the tests of these suites."""
    return {
        (path, row.eval_id): row
        for path, suite in base.suites.items()
        for names in [{test.id for test in suites[path].tests}]
        for row in suite.rows
        if row.eval_id in names
    }


def _without(suite: Suite, rows: Rows) -> Suite:
    return suite.with_tests(test for test in suite.tests if (suite.path, test.id) not in rows)


def _by_suite(rows: Rows) -> Mapping[str, Sequence[TestResult]]:
    found: dict[str, list[TestResult]] = {}
    for (path, _), row in rows.items():
        found.setdefault(path, []).append(row)
    return found


def _blocking(head: Rows, fail_on: Collection[str]) -> list[Key]:
    """The tests of head that block by themselves under `fail_on` (`gates`, `failures`) after fewer
    samples than a majority needs."""
    return [
        key
        for key, row in head.items()
        if len(row.main_samples) < MIN_MAJORITY
        and (
            ("gates" in fail_on and row.gates_failed)
            or ("failures" in fail_on and row.verdict == "fail")
        )
    ]


def _with_fresh(head: Rows, base: Rows, fresh: Mapping[Key, FreshSamples]) -> tuple[Rows, Rows]:
    """The results with fresh samples. Those of base are scored as on head, so they do not belong to
    a result that base scored differently."""
    on_head, on_base = dict(head), dict(base)
    for key, samples in fresh.items():
        on_head[key] = extended(head[key], samples.head, samples.problem)
        if row := base.get(key):
            scored = extended(as_head_scores(row), samples.base, samples.base_problem)
            on_base[key] = replace(row, rescored=scored) if row.rescored else scored
    return on_head, on_base
