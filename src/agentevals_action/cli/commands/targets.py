"""`targets`: every agent and model that suites can use, its origin, and whether it answers."""

import asyncio
import fnmatch
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path
from time import monotonic

import click

from agentevals_action.cli.loaded_suites import load_suites
from agentevals_action.cli.options import READ_INPUTS, input_options, json_option, paths_argument
from agentevals_action.cli.target_listing import (
    FoundTarget,
    ListedCheck,
    ListedTarget,
    find_targets,
    list_target,
    without_tests,
)
from agentevals_action.errors import AttemptError, ExitCode, InvalidInput
from agentevals_action.escaping import printable
from agentevals_action.execution.engine import Engine, open_engine
from agentevals_action.formatting import joined, plural
from agentevals_action.model.suite import BrokenSuite, Message, Suite
from agentevals_action.reports import console
from agentevals_action.reports.console import Line
from agentevals_action.reports.progress import show_checks
from agentevals_action.system.redaction import redact_record
from agentevals_action.targets.base import Request
from agentevals_action.targets.variables import missing_error, read_variables

_QUESTION = Message("user", "Reply with OK.")
_CONCURRENT = 8  # checks
_WHAT = 60  # characters of a command or an address
_LINE = 1_000  # characters
_TITLES = ("line", "target", "what it is", "used as", "limits", "needs")
_SUITES = 2  # suites that a cell of the table names; more are counted


@click.command("targets")
@paths_argument
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME-GLOB",
    help="List only targets whose names match this glob; may be repeated.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Ask each model and service that is used or named for a short answer, and run the "
    "healthchecks of commands.",
)
@json_option
@input_options(*READ_INPUTS, "timeout")
async def command(
    paths: tuple[Path, ...],
    names: tuple[str, ...],
    check: bool,
    as_json: bool,
    **inputs: str | None,
) -> int:
    """List the targets that suites can use: origin, uses, limits and variables; with --check,
    whether each answers."""
    loaded = await load_suites(inputs, paths)
    root = loaded.checkout.root
    suites = [
        without_tests(suite, root) if isinstance(suite, BrokenSuite) else suite
        for suite in loaded.suites
    ]
    if not any(suite.targets.targets for suite in suites):
        loaded.all_valid()
    _print_errors(loaded.broken)
    found = [
        one
        for one in find_targets(suites, {suite.path for suite in loaded.broken})
        if not names or any(fnmatch.fnmatchcase(one.target.name, glob) for glob in names)
    ]
    if not found:
        raise _nothing_found(suites, names)
    variables = _variables(loaded.environ, suites)
    listed = [list_target(one, variables) for one in found]
    async with open_engine(loaded.settings, loaded.environ, loaded.folder) as engine:
        if check:
            is_due = [bool(names) or one.is_used for one in listed]
            listed = await _check_all(found, listed, is_due, engine, loaded.settings.timeout)
        redactor = engine.redactor(suites)
    listed = [redact_record(one, redactor) for one in listed]
    if as_json:
        # ASCII: a name may contain lone surrogates, which UTF-8 cannot encode.
        print(json.dumps([one.model_dump(mode="json") for one in listed], indent=2))
    elif check:
        _print_checks(listed)
    else:
        _print_targets(listed)
    return ExitCode.INVALID if loaded.broken else _exit_code(listed)


def _print_errors(broken: Sequence[BrokenSuite]) -> None:
    errors = dict.fromkeys(str(diagnostic) for suite in broken for diagnostic in suite.errors)
    for error in errors:
        print(printable(error, _LINE), file=sys.stderr)
    for suite in broken:
        unknown = "which targets its tests use is unknown"
        print(f"warning: {printable(suite.path)} has errors: {unknown}", file=sys.stderr)


def _nothing_found(suites: Sequence[Suite], names: Sequence[str]) -> InvalidInput:
    known = sorted({name for suite in suites for name in suite.targets.targets})
    if known:
        problem = f"no target is called {joined(names, 'or')}"
        return InvalidInput(problem, f"the suites can use {joined(known)}")
    return InvalidInput(
        "the suites have no target", "write .agentv/targets.yaml, or name a file in `targets`"
    )


def _variables(
    environ: Mapping[str, str], suites: Sequence[Suite]
) -> Mapping[str, Mapping[str, str]]:
    """The variables that `${{ }}` may name, by the suite's path; InvalidInput if a `.env` file
    cannot be used."""
    read = cache(lambda root, folder: read_variables(environ, root, folder))
    try:
        return {suite.path: read(suite.root, suite.folder) for suite in suites}
    except AttemptError as error:
        raise InvalidInput(str(error), error.hint) from error


async def _check_all(
    found: Sequence[FoundTarget],
    listed: Sequence[ListedTarget],
    is_due: Sequence[bool],
    engine: Engine,
    timeout: float,
) -> list[ListedTarget]:
    """The same targets; those that are due have a check."""
    slots = asyncio.Semaphore(_CONCURRENT)
    with show_checks(sum(is_due)) as finish:

        async def check(one: FoundTarget, target: ListedTarget, due: bool) -> ListedTarget:
            if not due:
                return target
            async with slots:
                result = await _check(one, target, engine, timeout)
            finish(target.name)
            return target.model_copy(update={"check": result})

        try:
            return list(await asyncio.gather(*map(check, found, listed, is_due)))
        finally:
            await engine.close()


async def _check(
    one: FoundTarget, target: ListedTarget, engine: Engine, timeout: float
) -> ListedCheck:
    started = monotonic()
    try:
        if target.missing:
            raise missing_error(target.missing)
        known = await engine.calls.check(one.target, _request(one, timeout))
    except AttemptError as error:
        return ListedCheck(answers=False, kind=error.kind, problem=str(error), hint=error.hint)
    if known:
        return ListedCheck(answers=None, known=known)
    return ListedCheck(answers=True, duration_ms=round((monotonic() - started) * 1000, 1))


def _request(one: FoundTarget, timeout: float) -> Request:
    """A question of the first test that uses the target, because templates may use its fields."""
    suite, test = one.first or (one.home, None)
    id = test.id if test else "check"
    request = Request((_QUESTION,), id, 0, timeout, suite.root, suite.folder, suite=suite.path)
    if test is None:
        return request
    return replace(request, conversation_id=test.conversation_id, metadata=test.metadata)


def _exit_code(listed: Sequence[ListedTarget]) -> int:
    failed = [one.check for one in listed if one.check and one.check.answers is False]
    if any(check.kind == "configuration" for check in failed):
        return ExitCode.INVALID
    return ExitCode.INCONCLUSIVE if failed else ExitCode.PASSED


def _print_checks(listed: Sequence[ListedTarget]) -> None:
    for one in listed:
        if check := one.check:
            text = check.known or "; ".join(filter(None, (check.problem, check.hint)))
            if check.answers:
                text = f"answers ({(check.duration_ms or 0) / 1000:.2f} s)"
            console.print_check(check.answers is not False, one.name, text, sys.stdout)
    if left := sum(one.check is None for one in listed):
        targets = f"{left} {plural(left, 'target is', 'targets are')} used by no suite and"
        checked = f"{plural(left, 'was', 'were')} not checked"
        hint = (
            f"name {plural(left, 'it', 'them')} with `--name` to check {plural(left, 'it', 'them')}"
        )
        print(f"{targets} {checked}; {hint}", file=sys.stderr)


def _print_targets(listed: Sequence[ListedTarget]) -> None:
    if not sys.stdout.isatty():
        console.print_outline((line for one in listed for line in _outline(one)), sys.stdout)
        return
    for path, defined in groupby(listed, key=lambda one: one.location.path):
        console.print_texts(path, _TITLES, map(_row, defined), sys.stdout)


def _row(one: ListedTarget) -> Sequence[str]:
    what = f"{one.provider} {printable(one.what, _WHAT)}".rstrip()
    uses, limits = "; ".join(_uses(one, _SUITES)), ", ".join(one.limit_words)
    return str(one.location.line), one.name, what, uses, limits, ", ".join(_needs(one))


def _outline(one: ListedTarget) -> Iterator[Line]:
    location = f"{one.location.path}:{one.location.line}"
    what = f" {printable(one.what, _WHAT)}" if one.what else ""
    yield Line(0, one.name, f"{one.provider}{what} ({location})")
    yield Line(1, "used as", "; ".join(_uses(one)))
    if one.limit_words:
        yield Line(1, "limits", ", ".join(one.limit_words))
    if one.variables:
        yield Line(1, "needs", ", ".join(_needs(one)))


def _uses(one: ListedTarget, limit: int | None = None) -> Sequence[str]:
    """The uses of a target in words; more than `limit` suites are counted."""

    def names(suites: Sequence[str]) -> str:
        is_short = limit is None or len(suites) <= limit
        return ", ".join(suites) if is_short else f"{len(suites)} suites"

    roles = {"agent of": one.agent_of, "judge of": one.judge_of, "possibly by": one.unread}
    uses = [f"{role} {names(suites)}" for role, suites in roles.items() if suites]
    judged = [f"judged by {one.judge_target}"] if one.judge_target else []
    return [*(uses or ["nothing"]), *judged]


def _needs(one: ListedTarget) -> Sequence[str]:
    return [
        variable.name if variable.is_set else f"{variable.name} (not set)"
        for variable in one.variables
    ]
