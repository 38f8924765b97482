"""The stored results of base: those of the sources that the input `baseline` names."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from agentevals_action.baselines.stored import StoredSource, find_stored
from agentevals_action.errors import GitError
from agentevals_action.model.baseline import BaselineInfo, BaseResults, BaseSuite, StoredRun
from agentevals_action.model.run import Level
from agentevals_action.model.suite import Suite
from agentevals_action.results.jsonl import parse_results
from agentevals_action.review.inputs.inputs import ReviewInputs

#: Bytes of a baseline file, at most.
_FILE_BYTES = 64 * 1024 * 1024


async def find_base(inputs: ReviewInputs) -> BaseResults:
    """The stored results of the suites that run, read before a program of the change starts. A
    suite without stored results has to run on base, if `baseline` allows that."""
    settings, base = inputs.request.settings, inputs.base
    name, is_stored = settings.baseline, _is_stored(inputs)
    wanted, reason = bool(base.sha or base.problem or is_stored), base.reason
    if name == "none":
        wanted, reason = False, "`baseline: none` compares with nothing"
    elif is_stored and name == "rerun":
        wanted, reason = False, "`baseline: rerun` has no base here: only stored results are older"
    elif base.errors and set(base.errors) <= set(inputs.facts.sentences(Level.ERROR)):
        wanted, reason = False, "the base has the same errors"
    sources: Sequence[StoredSource] = ()
    if wanted and not base.problem:
        names = {"auto": ["branch", *(["file"] if settings.baseline_file else [])], "rerun": []}
        sources = [await _open(inputs, source) for source in names.get(name, [name])]
        if is_stored and not any(source.runs or source.problem for source in sources):
            wanted, reason = False, "nothing is stored yet of this commit or an older one"
    info = BaselineInfo(
        name,
        wanted=wanted,
        commit=base.sha,
        commit_time=base.time,
        reason="" if wanted else reason,
        problem=base.problem if wanted else "",
        is_obtained=not base.problem or bool(base.errors),
    )
    if not wanted or base.problem:
        return BaseResults(info)
    suites, missing = _suites_on_base(inputs)
    results = await find_stored(sources, suites, info)
    variants = {
        (arm.key, name): row
        for source in reversed(sources)
        for arm in inputs.part.arms
        for name, row in source.find_valid(arm, settings.samples).items()
    }
    return replace(results, suites={**results.suites, **missing}, variants=tuple(variants.values()))


def _is_stored(inputs: ReviewInputs) -> bool:
    """Whether the base is the newest stored results, and no commit."""
    return inputs.request.job.base.kind == "stored"


def _suites_on_base(inputs: ReviewInputs) -> tuple[dict[str, Suite], dict[str, BaseSuite]]:
    """The suites of base that run, and the reasons why base does not have the others; both by path
    on head."""
    on_base = {suite.path: suite for suite in inputs.base.suites}
    suites: dict[str, Suite] = {}
    missing: dict[str, BaseSuite] = {}
    for selection in inputs.part.selections:
        suite = on_base.get(selection.base_path or selection.path)
        if isinstance(suite, Suite):
            suites[selection.path] = suite
        elif suite is None:
            error = inputs.base.file_error  # it may declare the suite
            missing[selection.path] = BaseSuite(is_new=error is None, broken=error)
        else:
            missing[selection.path] = BaseSuite(broken=suite.errors[0])
    return suites, missing


async def _open(inputs: ReviewInputs, name: str) -> StoredSource:
    settings = inputs.request.settings
    if name == "branch":
        at, (runs, problem) = f"`{settings.baseline_branch}`", await _read_branch(inputs)
    else:
        at, (runs, problem) = f"`{settings.baseline_file}` on base", await _read_file(inputs)
    fingerprints = inputs.fingerprints
    return StoredSource(
        name,
        at,
        runs,
        problem,
        None if _is_stored(inputs) else fingerprints.with_rules(inputs.base.watch),
        fingerprints,
        datetime.now(UTC) - timedelta(days=settings.baseline_max_age),
        inputs.judge_rule,
    )


async def _read_branch(inputs: ReviewInputs) -> tuple[tuple[StoredRun, ...], str]:
    """The runs of the data branch, and a problem with them."""
    branch = inputs.request.data_branch
    if branch is None:
        return (), "not available outside GitHub"
    try:
        files = await branch.read()
    except GitError as error:
        return (), f"`{branch.name}` could not be read: {error.sentence}"
    if files is None:
        return (), "" if _is_stored(inputs) else (
            f"there is no branch `{branch.name}` yet: runs on the default branch with "
            "`contents: write` write it"
        )
    problems: list[str] = []
    suites = (*inputs.part.base.values(), *inputs.part.arms)
    paths = {suite.path for suite in suites}
    read = await asyncio.to_thread(list, files.runs(problems, paths))
    runs = await _usable(inputs, [run for _, run in read])
    return tuple(runs), "; ".join(problems)


async def _usable(inputs: ReviewInputs, runs: Sequence[StoredRun]) -> Sequence[StoredRun]:
    """The runs that are no earlier attempt of this run. Where base is stored results alone, these
    are the runs of this commit and of older commits: those from before the commit's time."""
    run_id = inputs.request.workspace.environ.get("GITHUB_RUN_ID")
    runs = [run for run in runs if run.run_id != run_id]
    repository, commit = inputs.request.repository, inputs.facts.commit
    if repository is None or not _is_stored(inputs):
        return runs
    commit_time = await repository.commit_time(commit)
    return [run for run in runs if run.commit == commit or (run.time or "") < commit_time]


async def _read_file(inputs: ReviewInputs) -> tuple[tuple[StoredRun, ...], str]:
    """The run in the baseline file of base's commit, and the reason if there is none."""
    path = inputs.request.settings.baseline_file or ""
    repository = inputs.request.repository
    commit = inputs.base.sha or inputs.facts.commit
    content = await repository.show(commit, path) if repository else None
    if content is None:
        return (), f"there is no `{path}` on base (a baseline file counts once it is merged)"
    if len(content) > _FILE_BYTES:
        return (), f"`{path}` on base is larger than {_FILE_BYTES >> 20} MiB"
    try:
        return (StoredRun(await asyncio.to_thread(parse_results, content)),), ""
    except ValueError as error:
        return (), f"`{path}` on base is not a results file: {error}"
