"""What a reader must know of a change besides its results: files that nothing covers, rules and
globs without an effect, edited replies, and files that differ from the commit."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from agentevals_action.formatting import counted, joined, list_paths, plural
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.path_patterns import WatchRule, rule_for, selected, selected_name
from agentevals_action.model.quarantine import FILE, Quarantine
from agentevals_action.model.result import TestResult
from agentevals_action.model.skill import SKILL_FILE
from agentevals_action.model.suite import BrokenSuite, Suite
from agentevals_action.review.comparison.decision_rule import RowsBySuite
from agentevals_action.review.inputs.base_tree import Base
from agentevals_action.review.inputs.changed_files import Head, edited_replies
from agentevals_action.review.inputs.request import ReviewRequest, Suites
from agentevals_action.review.inputs.selection import Change
from agentevals_action.runners.suites import gate_globs
from agentevals_action.settings import Settings
from agentevals_action.suites.checkout import overlooked
from agentevals_action.system.files.regular_files import is_present


def find_notices(
    request: ReviewRequest, head: Head, base: Base, change: Change, running: Collection[Suite]
) -> Iterator[str]:
    """The notices about a change, with the suites that are `running`, and about the files on disk:
    a local review is of the working tree. Blocks: suites that do not run are searched."""
    settings = request.settings
    changed = [path for file in change.files or () for path in file.paths]
    rules, edited = settings.watch_rules, edited_replies(changed, settings)
    if uncovered := describe_uncovered(change, running, settings.samples):
        yield uncovered
    if head.notice:
        yield head.notice
    if untested := describe_untested(change, head):
        yield untested
    if edited:
        yield (
            f"the change edits stored replies, which decide about the outcome: {list_paths(edited)}"
        )
    removed = [str(rule) for rule in base.watch if rule not in rules and not rule.excludes]
    added = [str(rule) for rule in rules if rule not in base.watch and rule.excludes]
    edits = [f"removes {list_paths(removed)}"] if removed else []
    edits += [f"adds {list_paths(added)}"] if added else []
    if edits and base.root:
        yield f"the change edits `watch`: it {joined(edits)}; base's rules hold, too"
    suites = None  # with a working directory, rules may be for the suites of other jobs
    if settings.working_directory == ".":
        suites = (*(suite.path for suite in head.suites), *(change.base_suites or ()))
    tracked = (path for files in change.tracked.values() for path in files.ids)
    yield from useless_rules(rules, (*changed, *(head.checkout.files or ()), *tracked), suites)
    if request.job.event != "local":
        yield from _describe_disk(settings, head, running)
    if not (request.run and request.run.paths):
        skipped = overlooked(head.checkout, [suite.path for suite in head.suites])
        yield from filter(None, [skipped])


def describe_uncovered(change: Change, suites: Collection[Suite], samples: int) -> str:
    """The sentence about the files that no suite and no rule of `watch` covers, with the lines
    for `watch` that state what they are; empty without such files. `suites` run, with `samples`
    samples of each test."""
    is_named = [change.names_agent(suite.path) for suite in suites]
    paths = [file.path for file in change.unknown_to(suites)]
    if all(is_named) and change.watch:
        paths = [path for path in paths if path not in change.shared]
    if not suites:  # `describe_untested` names them
        paths = [path for path in paths if path not in change.of_skills]
    if not paths or not (suites or all(change.watch)):  # without a rule, only errors stop all
        return ""
    folders = (PurePosixPath(path).parts for path in paths)
    globs = list(dict.fromkeys(f"{parts[0]}/**" if parts[1:] else parts[0] for parts in folders))
    if all(is_named) and change.watch:
        belong = plural(len(paths), "it belongs", "they belong")
        return (
            f"no suite and no rule of `watch` covers {list_paths(paths)}: "
            f"if {belong} to the agent, add {list_paths(globs)} to `watch`"
        )
    calls = counted(samples * sum(len(suite.tests) for suite in suites), "call")
    of_runners = " and those of runners" if any(suite.program for suite in suites) else ""
    excluded = list_paths([f'- "!{glob}"' for glob in globs])
    covering = "not every suite covers" if change.shared else "no suite covers"
    running = "the suites run whose agent no rule names" if any(is_named) else "all suites run"
    return (
        f"{covering} {list_paths(paths)}, and nothing says that the agent does not use "
        f"{plural(len(paths), 'it', 'them')}, so {running} ({calls} of agents{of_runners} on "
        f"each side that runs): write below `watch:` in `.agentevals.yaml` either {excluded}, or "
        "all of the agent's own files, as `- src/**`; this holds once it is merged"
    )


def describe_untested(change: Change, head: Head) -> str:
    """The sentence about changed skills of head that no suite tests; empty without them."""
    valid = [suite for suite in head.suites if isinstance(suite, Suite)]
    tested = {skill.folder for suite in valid for test in suite.tests for skill in test.skills}
    changed = {*change.of_skills.values()} - tested
    root = head.checkout.root
    untested = sorted(folder for folder in changed if is_present(root / folder / SKILL_FILE))
    if not untested:
        return ""
    it = plural(len(untested), "it", "them")
    return f"no test is about the changed {list_paths(untested)}: write `evals/evals.json` in {it}"


def useless_rules(
    watch: Sequence[WatchRule], files: Sequence[str], suites: Sequence[str] | None
) -> tuple[str, ...]:
    """A sentence for each rule that can have no effect. `files` and `suites` are all paths of both
    sides; None if not all suites are known."""
    sentences = []
    for rule in watch:
        missing = "suite" if any(map(rule.covers, files)) else "file"
        useless = suites is not None and not any(map(rule.affects, suites))
        if missing == "file" or useless:
            sentences.append(
                f"the rule `{rule}` of `watch` matches no {missing} of the repository, "
                "so it has no effect: fix it or remove it"
            )
    return tuple(sentences)


def _describe_disk(settings: Settings, head: Head, running: Collection[Suite]) -> Iterator[str]:
    """The tracked files of the suites that run, and those that `watch` names for them, that differ
    from the commit."""
    used = {FILE, *(file.path for suite in running for file in suite.files)}
    paths = [
        path
        for path in sorted(head.checkout.tracked.intersection(head.uncommitted))
        if path in used
        or any(rule_for(settings.watch_rules, path, suite.path) for suite in running)
    ]
    if paths:
        yield (
            f"{list_paths(paths)} {plural(len(paths), 'differs', 'differ')} from the commit: "
            "the review is of what was on disk when this step started"
        )


def unmatched_globs(
    suites: Suites, quarantines: Sequence[Quarantine], rows: RowsBySuite
) -> Iterator[Diagnostic]:
    """A warning for each glob of gates or of the quarantine that no test matches; `suites` are all
    suites of head. No warning where the glob may match unknown tests: the tests of a broken suite,
    or, if a suite's tests are known only when it has run, of one that did not run or failed."""
    names = {suite.path: _find_ids(suite, rows.get(suite.path, {})) for suite in suites}
    valid = [suite for suite in suites if isinstance(suite, Suite)]
    declared: list[tuple[Location, Sequence[str], str, Sequence[str]]] = [*gate_globs(valid)]
    for entry in quarantines:
        meant = [path for path in names if not entry.suites or selected(path, entry.suites)]
        declared.append((entry.location, entry.tests, "in quarantine", meant))
    for location, globs, role, paths in declared:
        known = [ids for ids in (names[path] for path in paths) if ids is not None]
        for glob in globs if len(known) == len(paths) else ():
            matched = any(selected_name(name, [glob]) for ids in known for name in ids)
            if not glob.startswith("!") and not matched:
                problem = f"no test matches `{glob}`, which is {role}"
                yield Diagnostic(location, problem, "correct it")


def _find_ids(suite: Suite | BrokenSuite, rows: Mapping[str, TestResult]) -> Collection[str] | None:
    """The ids of the tests of a suite with these results; None if they are unknown."""
    if isinstance(suite, BrokenSuite):
        return None
    if suite.tests:
        return [test.id for test in suite.tests]
    is_known = rows and not any(row.error for row in rows.values())
    return rows.keys() if is_known else None
