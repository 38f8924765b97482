"""What `run.json` states about a run besides its rows."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from agentevals_action.execution.fingerprint import Fingerprints
from agentevals_action.formatting import list_paths, plural
from agentevals_action.github.events import Job
from agentevals_action.model.baseline import BaseResults
from agentevals_action.model.diagnostic import Diagnostic
from agentevals_action.model.edits import SuiteEdits
from agentevals_action.model.run import Policy, Run, RunSuite, Selection
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.results.shards import digest_of_inputs
from agentevals_action.review import waivers
from agentevals_action.review.change.selection import Change
from agentevals_action.review.inputs import ReviewInputs
from agentevals_action.review.request import ReviewRequest
from agentevals_action.suites.checkout import distinct_errors


def run_facts(
    inputs: ReviewInputs, base: BaseResults, started: datetime, notices: Sequence[str]
) -> Run:
    """The facts of a run that is done, with its `notices`."""
    request, settings = inputs.request, inputs.request.settings
    plan, selected, quarantines = inputs.plan, inputs.selected, inputs.quarantines
    questions = _changed_question_files(plan.head, inputs.change, inputs.fingerprints)
    now = datetime.now(UTC)
    return Run(
        head_sha=request.job.head_sha,
        base_sha=inputs.base.sha,
        commit=inputs.head_sha,
        time=started.isoformat(timespec="milliseconds"),
        shard=settings.shard,
        inputs=digest_of_inputs(settings),
        policy=policy_of(request),
        samples=settings.samples,
        suites=tuple(
            _suite(inputs, selection, base, questions.get(selection.path, {}))
            for selection in plan.selections
        ),
        baseline=base.info,
        invalid=(*distinct_errors(selected.broken), *plan.missing, *quarantines.errors),
        warnings=(
            *distinct_errors(selected.unaffected),
            *(warning for suite in plan.head.values() for warning in suite.warnings),
            *_quarantine_warnings(inputs),
        ),
        gone_suites=selected.gone,
        suites_in_repository=len(inputs.suites),
        quarantines=quarantines,
        acceptance=inputs.acceptance,
        notices=(
            *inputs.notices,
            *filter(None, [_differing_notice(request.job, inputs.differing)]),
            *notices,
        ),
        duration_ms=(now - started).total_seconds() * 1000,
        uncommitted=inputs.uncommitted,
        test_globs=request.run.globs if request.run else (),
        template=inputs.template,
    )


def policy_of(request: ReviewRequest) -> Policy:
    """The settings that decide."""
    settings = request.settings
    return Policy(
        request.fail_on,
        settings.min_pass_rate,
        settings.on_inconclusive,
        settings.accept_label,
        settings.untouched,
        settings.confirm,
        settings.alpha,
        asks_person=bool(request.job.without_secrets),
    )


def _suite(
    inputs: ReviewInputs,
    selection: Selection,
    base: BaseResults,
    question_files: Mapping[str, tuple[str, ...]],
) -> RunSuite:
    path, suite = selection.path, inputs.plan.head[selection.path]
    return RunSuite(
        selection,
        suite.name,
        tuple(test.id for test in suite.tests),
        base.problems.get(path) or (base.info.problem if base.info.wanted else ""),
        base.notes.get(path, ""),
        base.suites[path].origin if path in base.suites else None,
        inputs.edits.get(path, SuiteEdits()).edits,
        question_files,
    )


def _changed_question_files(
    suites: Mapping[str, Suite], change: Change, fingerprints: Fingerprints
) -> dict[str, dict[str, tuple[str, ...]]]:
    """The changed files that are part of a question, by suite and test id."""
    changed = {file.path for file in change.files or ()}
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for path, suite in suites.items():
        if changed.isdisjoint(file.path for file in suite.files):
            continue
        for test in suite.tests:
            files = fingerprints.describe(suite).question_files(test)
            if in_question := tuple(file for file in files if file in changed):
                found.setdefault(path, {})[test.id] = in_question
    return found


def _differing_notice(job: Job, names: Sequence[str]) -> str:
    """The tracked files of suites that differ from the commit, in a sentence; empty if there are
    none. A local review is of the working tree."""
    if job.event == "local" or not names:
        return ""
    return (
        f"{list_paths(names)} {plural(len(names), 'differs', 'differ')} from the commit: "
        "the review is of what was on disk when this step started"
    )


def _quarantine_warnings(inputs: ReviewInputs) -> tuple[Diagnostic, ...]:
    quarantines, suites = inputs.quarantines, inputs.suites
    if inputs.request.run and inputs.request.run.paths:  # it may cover other suites
        return quarantines.warnings
    ids = (
        (suite.path, (test.id for test in suite.tests))
        for suite in suites
        if isinstance(suite, Suite)
    )
    unread = [suite.path for suite in suites if isinstance(suite, BrokenSuite)]
    return (
        *quarantines.warnings,
        *waivers.not_on_base(quarantines),
        *waivers.without_tests(quarantines.head, ids, unread),
    )
