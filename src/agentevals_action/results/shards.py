"""A run on several machines: the part of the tests of each machine, and the merge of the parts."""

import hashlib
import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agentevals_action.errors import ExitCode, InvalidInput
from agentevals_action.formatting import counted, distinct, joined, plural, shortened
from agentevals_action.model.baseline import BaseSuite
from agentevals_action.model.result import Key, TestResult
from agentevals_action.model.run import Level, Policy, Run, RunSuite, Shard, notes
from agentevals_action.model.suite import Suite, Test
from agentevals_action.results.run_folder import RUN, RunResults, read_folder
from agentevals_action.settings import Settings

#: The inputs that decide which tests run and how: all shards must have them in common.
_COMMON = (
    *("suites", "select", "watch", "untouched", "targets", "target", "judge_target", "samples"),
    *("timeout", "setup", "prepare", "env", "strict", "working_directory", "baseline"),
    *("baseline_branch", "baseline_file", "baseline_max_age", "cache", "cache_dir"),
)

#: Errors of tests that are listed.
_ERRORS = 10


def digest_of_inputs(settings: Settings, suites: Iterable[Suite]) -> str:
    """A digest of what all shards must have in common: inputs, which may contain secrets, and the
    tests of the suites, as far as they are known before the run."""
    tests = [(suite.path, [test.id for test in suite.tests]) for suite in suites]
    values = repr([*(getattr(settings, name) for name in _COMMON), tests])
    return hashlib.sha256(values.encode("utf-8", "replace")).hexdigest()[:16]


def divided_budget(settings: Settings) -> Settings:
    """The settings with the shard's share of the budget."""
    if settings.max_cost_usd is None or settings.shard is None:
        return settings
    share = settings.max_cost_usd / settings.shard.total
    return settings.model_copy(update={"max_cost_usd": share})


def select_part(
    suites: Mapping[str, Sequence[Test]], shard: Shard
) -> Mapping[str, Collection[str]]:
    """The ids of the tests of a shard by the suite's path on head, from the tests of both sides.
    Every machine makes the same parts: the largest groups of tests first, each to the shard with
    the fewest tests. A suite of a runner, whose tests are not known yet, is one group."""
    groups = [(path, names) for path, tests in suites.items() for names in _groups(tests) or [()]]
    loads = [(0, number) for number in range(1, shard.total + 1)]
    part: dict[str, set[str]] = {}
    for path, names in sorted(groups, key=lambda group: len(group[1]), reverse=True):
        load, number = heapq.heappop(loads)
        heapq.heappush(loads, (load + max(len(names), 1), number))
        if number == shard.number:
            part.setdefault(path, set()).update(names)
    return part


def _groups(tests: Sequence[Test]) -> Sequence[Sequence[str]]:
    """The ids of tests that stay on one machine: the turns of a conversation; all tests of a suite
    some of which share a workspace, or belong to another conversation on base."""
    conversations: dict[str, str | None] = {}
    is_divisible = True
    for test in tests:
        workspace, first = test.workspace, conversations.setdefault(test.id, test.conversation_id)
        shares = workspace is not None and not workspace.per_test and not workspace.own
        is_divisible = is_divisible and not shares and first == test.conversation_id
    if not is_divisible:
        return [list(conversations)]
    groups: dict[tuple[str | None, str], list[str]] = {}
    for name, conversation in conversations.items():
        groups.setdefault((conversation, "" if conversation else name), []).append(name)
    return list(groups.values())


def reduce_suite(suite: Suite, names: Collection[str], total: int) -> Suite:
    """A suite with these tests alone, whose targets get a share of their requests per minute."""
    targets = {
        name: target.model_copy(
            update={"requests_per_minute": max(target.requests_per_minute // total, 1)}
        )
        if target.requests_per_minute
        else target
        for name, target in suite.targets.targets.items()
    }
    reduced = suite.with_tests(test for test in suite.tests if test.id in names)
    return reduced.model_copy(update={"targets": replace(suite.targets, targets=targets)})


def errors(results: RunResults) -> Sequence[str]:
    """Why a shard does not end with 0: errors of suites, what the run lacks, errors of tests."""
    run, rows = results.run, results.head
    of_tests = [
        f"{row.eval_path}: {row.eval_id}: {row.error.message}"
        for row in rows
        if row.error and not row.error.is_advisory
    ]
    return [
        *run.sentences(Level.ERROR),
        *run.sentences(Level.PROBLEM),
        *shortened(of_tests, _ERRORS),
    ]


def describe(results: RunResults) -> str:
    """A sentence about what a shard ran."""
    errors = sum(row.state == "error" for row in results.head)
    ended = f", {errors:,} of which ended in an error" if errors else ""
    return f"shard {results.run.shard}: {counted(len(results.head), 'test')} ran{ended}"


def exit_code(results: RunResults) -> ExitCode:
    """Inconclusive if a test ended in an error, so that "re-run failed jobs" runs this shard again.
    Whether tests fail is for the merge to decide."""
    if results.run.diagnostics(Level.ERROR):
        return ExitCode.INVALID
    is_complete = all(row.state != "error" for row in results.head) and not results.run.sentences(
        Level.PROBLEM
    )
    return ExitCode.PASSED if is_complete else ExitCode.INCONCLUSIVE


def read_shards(folder: Path, head_sha: str, policy: Policy | None) -> RunResults:
    """The results of all shards of a commit, whose report folders are in `folder`, as one run,
    which `policy` decides (None: that of the shards). Raises InvalidInput without a shard."""
    parts, unreadable = [], []
    for file in sorted(folder.glob(f"*/{RUN}")):
        try:
            parts.append(read_folder(file.parent))
        except InvalidInput as error:
            unreadable.append(str(error))
    return merge(parts, head_sha, unreadable, policy)


def merge(
    parts: Sequence[RunResults],
    head_sha: str,
    unreadable: Sequence[str],
    policy: Policy | None = None,
) -> RunResults:
    """The results of all shards as one run. What a shard lacks is a problem of the run.
    `unreadable` are sentences about folders that cannot be read. Raises InvalidInput without a
    shard of the commit `head_sha`."""
    ordered = sorted(parts, key=lambda part: part.run.time, reverse=True)
    of_commit = [part for part in ordered if part.run.shard and part.run.head_sha == head_sha]
    if not of_commit:
        raise InvalidInput(
            "; ".join([f"there are no results of a shard of {head_sha[:12]}", *unreadable]),
            "download the report folders of the shards before this step",
        )
    latest = of_commit[0].run
    policy = policy or latest.policy
    problems = [*unreadable]
    if different := policy.different_inputs(latest.policy):
        names = joined([f"`{name}`" for name in different])
        problems.append(f"the shards have another value of {names} than this job: set it in all")
    newest: dict[int, RunResults] = {}
    for part in ordered:
        if difference := _difference(part.run, latest):
            problems.append(f"the results of {_name(part.run)} are not used: {difference}")
        elif part.run.shard:
            newest.setdefault(part.run.shard.number, part)
    total = latest.shard.total if latest.shard else 0
    missing = [str(number) for number in range(1, total + 1) if number not in newest]
    if missing:
        shards, have = plural(len(missing), "shard", "shards"), plural(len(missing), "has", "have")
        problems.append(f"{shards} {joined(missing)} of {total} {have} no results")
    used = [newest[number] for number in sorted(newest)]
    merged = _merged([part.run for part in used], policy, problems)
    tests = [(suite, test) for suite in merged.suites for test in suite.tests]
    head = {(suite.path, test): index for index, (suite, test) in enumerate(tests)}
    base = {(suite.base_path, test): index for index, (suite, test) in enumerate(tests)}
    return RunResults(
        merged,
        _in_order((row for part in used for row in part.head), head),
        _in_order((row for part in used for row in part.base), base),
        _in_order((row for part in used for row in part.variants), head),
    )


def _in_order(rows: Iterable[TestResult], order: Mapping[Key, int]) -> tuple[TestResult, ...]:
    return tuple(sorted(rows, key=lambda row: order.get(row.key, len(order))))


def _name(run: Run) -> str:
    return f"shard {run.shard}" if run.shard else "a run that is no shard"


def _difference(run: Run, latest: Run) -> str:
    """Why a run does not belong to the same run as the latest shard; empty if it does."""
    if run.shard is None or latest.shard is None or run.shard.total != latest.shard.total:
        return f"the latest is shard {latest.shard}"
    commits = [(shard.head_sha, shard.base_sha, shard.commit) for shard in (run, latest)]
    if commits[0] != commits[1]:
        return "they are of another commit or base"
    if (run.inputs, run.policy) != (latest.inputs, latest.policy):
        return "they are of other inputs or tests: give all jobs the same"
    return ""


def _merged(runs: Sequence[Run], policy: Policy, problems: Sequence[str]) -> Run:
    problem = next(filter(None, (run.baseline.problem for run in runs)), "")
    return runs[0].model_copy(
        update={
            "shard": None,
            "policy": policy,
            "suites": tuple(map(_merged_suite, *(run.suites for run in runs))),
            "baseline": replace(runs[0].baseline, problem=problem),
            "notes": distinct([*(run.notes for run in runs), notes(Level.PROBLEM, problems)]),
            "uncommitted": distinct(run.uncommitted for run in runs),
            "duration_ms": max(run.duration_ms for run in runs),
        }
    )


def _merged_suite(*parts: RunSuite) -> RunSuite:
    """A suite of which each shard ran a part: base's results are known if all shards know them. A
    shard without a test of the suite does not know that the suite is new or broken on base."""
    bases = [part.base for part in parts]
    base = BaseSuite(
        origin=next(filter(None, (base.origin for base in bases)), None),
        is_new=any(base.is_new for base in bases),
        broken=next(filter(None, (base.broken for base in bases)), None),
        problem=next(filter(None, (base.problem for base in bases)), ""),
        same_service=distinct(base.same_service for base in bases),
    )
    variants = [
        replace(arms[0], stored=distinct(arm.stored for arm in arms))
        for arms in zip(*(part.variants for part in parts), strict=True)
    ]
    tests = distinct(part.tests for part in parts)
    return replace(parts[0], tests=tests, base=base, variants=tuple(variants))
