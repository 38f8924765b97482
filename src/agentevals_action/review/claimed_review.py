"""The review of results that an untrusted run claims: base's evaluators score its answers again
where that needs no key."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from agentevals_action.errors import ExitCode
from agentevals_action.execution.engine import Engine, open_engine
from agentevals_action.formatting import counted, list_paths
from agentevals_action.github.base import Host
from agentevals_action.github.events import Job
from agentevals_action.github.run_requests import RUN
from agentevals_action.github.runner import job_log
from agentevals_action.model.baseline import BaselineInfo
from agentevals_action.model.changed_file import ChangedFile
from agentevals_action.model.comparison import SuiteComparison
from agentevals_action.model.edits import SuiteEdits
from agentevals_action.model.result import SuiteRun, TestResult
from agentevals_action.model.review import Decision, Outcome, Review
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.reports.progress import show_progress
from agentevals_action.results.summary import suite_run
from agentevals_action.results.trace_summary import stored_work
from agentevals_action.review import gate, waivers
from agentevals_action.review.change.changed_files import describe_change, imported_by_judges
from agentevals_action.review.change.selection import SelectedSuites, select_suites
from agentevals_action.review.change.workspace import ReviewWorkspace
from agentevals_action.review.claims import Claims
from agentevals_action.review.comparison.compare import Knowledge, Side, compare_suite
from agentevals_action.review.run_sides import Sides
from agentevals_action.settings import Settings
from agentevals_action.suites.checkout import Checkout, load_all, suite_paths
from agentevals_action.suites.configuration_file import with_configuration
from agentevals_action.suites.find import find_suites
from agentevals_action.suites.quarantine_file import read_quarantines
from agentevals_action.system import child_environment, signals
from agentevals_action.system.isolation import Isolation
from agentevals_action.system.redaction import redact_record

#: What the title of the check run begins with.
CLAIMED = "Claims of an untrusted run, not verified."
SCORED_AGAIN = "Answers of an untrusted run, scored again with base's evaluators."
_ASK = (
    f"the results are claims of a run that the pull request controls: a person with write access "
    f"can comment `{RUN}` for a run that is trusted"
)
_BASE = "the results of base are claims of the same run"


@dataclass(frozen=True)
class Verified:
    """The results of head by suite, those that base's evaluators scored again in the place of
    claims, and the reasons why they are not proof of a pass."""

    head: Mapping[str, SuiteRun]
    doubts: tuple[str, ...]


def review_claims(
    job: Job,
    claims: Claims,
    base: ReviewWorkspace,
    host: Host,
    isolation: Isolation,
    known_doubts: Sequence[str],
) -> Review:
    """Reviews claims about the head of a pull request. `base` is the checked out tree of base,
    `known_doubts` are what GitHub's API says against a pass. No program and no file of head is
    used."""
    # Without a key, and without one that the workflow gives by mistake.
    environ, _ = child_environment.scrub(base.environ, ())
    # Attack: the workflow replays cassettes in both phases. An agent that is replayed needs no key,
    # and answers that nobody recorded would be proof.
    changed = {"env": (), "cache": "off"}
    settings = with_configuration(base.settings, base.folder).model_copy(update=changed)
    base = replace(base, settings=settings, environ=environ)
    checkout = Checkout.at(base.folder, settings, environ, is_commit=True)
    paths = suite_paths(checkout, settings)
    suites = load_all(checkout, settings, paths, base.folder, environ)
    files = host.changed_files()
    change = replace(
        describe_change(files, (base.folder,)),
        imported=imported_by_judges(suites),
        everything=job.select == "all",
    )
    selected = select_suites(suites, change, settings.watch_rules)
    if selected.is_empty and settings.untouched == "all":
        selected = select_suites(suites, replace(change, everything=True), settings.watch_rules)
    with open_engine(settings, environ, base.folder, isolation=isolation) as engine:
        valid = [suite for suite in suites if isinstance(suite, Suite)]
        engine.load(valid, checkout.tracked)
        redactor = engine.redactor(valid)
        log = partial(job_log.folded, redact=redactor.redact, in_actions=base.in_actions)
        with show_progress() as progress:
            sides = Sides(engine, base, base.folder, redactor, progress, log)
            verified = _verify(engine, sides, claims, valid)
        reviewed = _decide(job, claims, base, host, verified, selected, valid)
    doubts = (
        *_doubts_about_change(files, checkout, settings),
        *verified.doubts,
        *_missing_suites(claims, suites, selected),
        *known_doubts,
    )
    reviewed = _with_doubts(reviewed, claims, doubts)
    gone = [one.path for one in files or () if one.status == "removed"]
    reviewed = replace(
        reviewed,
        gone_suites=tuple(one.path for one in suites if one.path in gone),
        notices=(*reviewed.notices, *_edits_notice(reviewed, files, valid)),
    )
    return redact_record(replace(reviewed, suites_in_repository=len(suites)), redactor)


def _verify(engine: Engine, sides: Sides, claims: Claims, suites: Iterable[Suite]) -> Verified:
    """Scores the answers again. The evaluators run in base's tree."""
    on_base = {suite.path: suite for suite in suites}
    doubts: list[str] = []
    known: dict[str, Suite] = {}
    stored: dict[str, dict[str, TestResult]] = {}
    edits: dict[str, SuiteEdits] = {}
    for path, run in claims.head.items():
        suite = on_base.get(path)
        if suite is None:
            continue
        if errors := engine.target_errors(suite):
            doubts.append(f"{list_paths([path])} needs a key: {errors[0].problem}")
            continue
        if suite.programs and any(test.workspace for test in suite.tests):
            # Attack: the claims leave out that the agent had a workspace.
            doubts.append(f"the workspaces that the judges of {list_paths([path])} need are gone")
            continue
        ids = {test.id for test in suite.tests}
        results = {
            one.eval_id: one for one in run.results if one.eval_id in ids and _has_answers(one)
        }
        without = {one.eval_id for one in run.results if one.eval_id in ids} - results.keys()
        answered = {one.eval_id for one in run.results} - without
        doubts += _different_tests(path, ids, answered)
        known[path], stored[path] = suite, results
        programs = frozenset(results) if suite.programs else frozenset[str]()
        edits[path] = SuiteEdits(rescored=frozenset(results), by_program=programs)
    if foreign := len(claims.head.keys() - on_base.keys()):
        # Their names are part of the claims.
        doubts.append(f"base does not have {counted(foreign, 'suite')} of the results")
    scored = signals.run(_score(engine, sides, known, stored, edits))
    heads = {}
    for path, run in claims.head.items():
        again = scored.get(path, {})
        scored_run = [again.get(one.eval_id, one) for one in run.results]
        heads[path] = suite_run(path, scored_run[0].dataset, scored_run)
        unproven = [one for one in again.values() if one.verdict != "pass"]
        if unproven:
            # A test that also fails on base is no regression, but base's results are claims, too.
            doubts.append(f"{counted(len(unproven), 'test')} of {list_paths([path])} did not pass")
    return Verified(heads, tuple(doubts))


def _has_answers(result: TestResult) -> bool:
    """Whether every sample has an answer that can be read; what is claimed may be anything."""
    try:
        return bool(result.samples) and all(
            stored_work(sample).trace.messages for sample in result.samples
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return False


async def _score(
    engine: Engine,
    sides: Sides,
    suites: Mapping[str, Suite],
    stored: Mapping[str, Mapping[str, TestResult]],
    edits: Mapping[str, SuiteEdits],
) -> Mapping[str, Mapping[str, TestResult]]:
    try:
        return await sides.score_by_base(suites, stored, edits)
    finally:
        await engine.close()


def _different_tests(path: str, base: Iterable[str], head: Iterable[str]) -> Iterator[str]:
    """Attack: a test that would fail is left out, or renamed."""
    on_base, on_head = set(base), set(head)
    if missing := len(on_base - on_head):
        yield f"there is no answer to {counted(missing, 'test')} of {list_paths([path])}"
    if new := len(on_head - on_base):
        yield f"base does not have {counted(new, 'test')} of {list_paths([path])}"


def _doubts_about_change(
    files: Sequence[ChangedFile] | None, checkout: Checkout, settings: Settings
) -> Iterator[str]:
    """Attack: a workflow of the pull request uploads an artifact that it made up, or a new suite
    that fails is left out."""
    if files is None:
        yield "the changed files are not known"
        return
    changed = {path for file in files for path in file.paths}
    if any(path.startswith(".github/") for path in changed):
        yield "the change edits `.github`, which made the results"
    names = sorted(changed - checkout.tracked)
    new = find_suites(checkout.root, checkout.below, settings.suites, (), names)
    if new:
        yield f"{list_paths(new)} is not on base, and may be a suite"


def _missing_suites(
    claims: Claims, suites: Sequence[Suite | BrokenSuite], selected: SelectedSuites
) -> Iterator[str]:
    """Attack: a suite that would fail is left out."""
    missing = [one.path for one in selected.selections if one.path not in claims.head]
    if not suites:
        yield "base has no suite"
    if missing:
        yield f"the change affects {list_paths(missing)}, and there are no results of it"
    broken = [suite.path for suite in suites if isinstance(suite, BrokenSuite)]
    if broken:
        yield f"{list_paths(broken)} is invalid on base"


def _decide(
    job: Job,
    claims: Claims,
    base: ReviewWorkspace,
    host: Host,
    verified: Verified,
    selected: SelectedSuites,
    suites: Iterable[Suite],
) -> Review:
    settings = base.settings
    on_base = {suite.path: suite for suite in suites}
    compared = tuple(
        _with_removed_gates(
            compare_suite(
                path,
                run.name,
                run,
                Side(claims.base.get(path)),
                Knowledge(edits=claims.edits.get(path, ())),
            ),
            claims.head[path],
            on_base.get(path),
        )
        for path, run in verified.head.items()
    )
    acceptance = host.acceptance(settings.accept_label)
    usable = acceptance if acceptance and not acceptance.problem else None
    quarantines = read_quarantines(base.folder, datetime.now(UTC).date())
    compared = waivers.apply(compared, quarantines, usable)
    info = BaselineInfo("none", wanted=False, reason=_BASE)
    policy = gate.Policy(
        settings.fail_on or job.fail_on,
        settings.min_pass_rate,
        accept_label=settings.accept_label,
        untouched=settings.untouched,
    )
    ran = [one for one in selected.selections if one.path in verified.head]
    return Review(
        head_sha=job.head_sha,
        base_sha=job.base.revision,
        decision=gate.decide(policy, compared, info),
        selections=tuple(ran),
        suites=compared,
        baseline=info,
        notices=tuple(filter(None, [acceptance.problem if acceptance else ""])),
        samples=settings.samples,
    )


def _with_removed_gates(
    compared: SuiteComparison, claimed: SuiteRun, base: Suite | None
) -> SuiteComparison:
    """The comparison with the gates of base's tests that the claimed results of head lack: the
    results that are compared have base's gates."""
    kept = {one.eval_id: {gate.name for gate in one.gates} for one in claimed.results}
    gates = {test.id: [gate.name for gate in test.gates] for test in (base.tests if base else ())}
    tests = (
        replace(
            test,
            gates_removed=tuple(
                name for name in gates.get(test.id, ()) if name not in kept[test.id]
            ),
        )
        if test.id in kept
        else test
        for test in compared.tests
    )
    return replace(compared, tests=tuple(tests))


def _edits_notice(
    reviewed: Review, files: Sequence[ChangedFile] | None, suites: Iterable[Suite]
) -> Iterator[str]:
    """Attack: the run leaves out that the change weakens a gate."""
    named = {
        file.path
        for suite in suites
        for file in suite.files
        if file.role != "target's command"  # the agent itself
    }
    changed = sorted(named.intersection(path for file in files or () for path in file.paths))
    if changed or any(suite.edits for suite in reviewed.suites):
        what = f" of suites ({list_paths(changed)})" if changed else ""
        yield (
            f"the change edits files{what}: which gates, evaluators, targets and references it "
            "edits or removes in them is what the run says"
        )


def _with_doubts(reviewed: Review, claims: Claims, doubts: tuple[str, ...]) -> Review:
    """The review of claims: green only without any doubt."""
    decision = reviewed.decision
    if claims.outcome is not Outcome.PASSED:
        # With `on-inconclusive: neutral`, a run that could not decide ends as a success.
        doubts = (f"the run says that its outcome is `{claims.outcome}`", *doubts)
    if claims.outcome in (Outcome.FAILED, Outcome.INVALID):
        if decision.outcome is not Outcome.FAILED:
            decision = Decision(
                Outcome.FAILED, ExitCode.FAILED, "failure", (*decision.reasons, *doubts)
            )
    elif decision.outcome is Outcome.FAILED and not any(
        test.failed_gates for suite in reviewed.suites for test in suite.tests
    ):
        # The run may have confirmed by fresh samples that a verdict dropped by chance.
        reasons = (*decision.reasons, "the run says that it passed", *doubts)
        decision = gate.inconclusive_decision(reasons, "fail")
    elif decision.outcome is Outcome.PASSED and doubts:
        decision = gate.inconclusive_decision(doubts, "fail")
    elif decision.outcome is not Outcome.PASSED:
        decision = replace(decision, reasons=(*decision.reasons, *doubts))
    decision = gate.with_action(decision)
    is_green = decision.outcome is Outcome.PASSED
    return replace(
        reviewed,
        decision=decision,
        claims=SCORED_AGAIN if is_green else CLAIMED,
        notices=(*reviewed.notices, *(() if is_green else (_ASK,))),
    )
