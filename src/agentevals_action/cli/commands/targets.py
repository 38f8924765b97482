"""`targets`: every agent and model that suites can use, and whether it answers."""

import asyncio
import fnmatch
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from time import monotonic
from typing import Any

import click

from agentevals_action.cli import output
from agentevals_action.cli.loaded_suites import load_suites, paths_argument
from agentevals_action.cli.options import READ_INPUTS, input_options, json_option
from agentevals_action.cli.tables import print_table
from agentevals_action.errors import AttemptError, ExitCode, InvalidInput
from agentevals_action.escaping import printable
from agentevals_action.execution.engine import open_scratch
from agentevals_action.execution.secrets import keeping_secrets
from agentevals_action.formatting import dollars, joined, plural
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.messages import Message
from agentevals_action.model.suite import Suite
from agentevals_action.model.target import ProviderContext, Request, Target
from agentevals_action.reports.terminal.console import STYLES
from agentevals_action.reports.terminal.lines import Styled
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.system.isolation import NO_ISOLATION
from agentevals_action.system.redaction import without_secrets
from agentevals_action.targets.calls.client import TargetClient
from agentevals_action.targets.prices import known_price
from agentevals_action.targets.variables import Variables, missing_error, read_variables

_QUESTION = Message("user", "Reply with OK.")
_CONCURRENT = 8  # checks
_MODEL = 60  # characters of a model, a command or an address
_TITLES = ("target", "provider", "model", "price per million tokens", "usable")
#: Options that identify an agent or a model; the first option that is set is shown.
_IDENTIFYING = ("model", "deployment", "url", "command", "target", "path")
_CREDENTIALS = re.compile(r"//[^/@]*@")


@dataclass(frozen=True)
class _ListedTarget:
    """A target, and the `suites` in whose folders its variables are looked up: the suites that use
    it, or all that can if no suite does. `missing` are the names of its unset variables. `usable`
    is None if a check did not ask the target, `note` is the state in words; `error_kind` is as in
    AttemptError."""

    target: Target
    suites: Sequence[Suite]
    is_used: bool
    missing: Sequence[str]
    usable: bool | None
    note: str
    error_kind: str = ""


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
    """List the targets that suites can use: provider, model, price and missing variables; with
    --check, whether each answers."""
    loaded = await load_suites(inputs, paths)
    suites = loaded.all_valid()
    environ, settings = loaded.checkout.environ, loaded.checkout.settings
    variables = cache(partial(read_variables, environ))
    listed = _find_targets(suites, names, variables)
    with keeping_secrets(suites, variables, environ, settings.env):
        if check:
            async with open_scratch(NO_ISOLATION) as scratch:
                children = ChildContext.from_environ(environ, settings.env)
                client = TargetClient(variables, ProviderContext({}, children, scratch))
                listed = await _check_all(listed, client, settings.timeout, asks_all=bool(names))
        entries = [without_secrets(_entry(target)) for target in listed]
    if as_json:
        output.print_json(entries)
    else:
        for path, targets in groupby(entries, key=lambda entry: entry["location"].path):
            print_table(_TITLES, map(_row, targets), texts=range(len(_TITLES)), heading=path)
    kinds = {target.error_kind for target in listed} - {""}
    if "configuration" in kinds:
        return ExitCode.INVALID
    return ExitCode.INCONCLUSIVE if kinds else ExitCode.PASSED


def _find_targets(
    suites: Sequence[Suite], names: Sequence[str], variables: Variables
) -> Sequence[_ListedTarget]:
    """Every target that the suites can use and whose name matches, in the order of files and lines;
    InvalidInput without such a target, or if a `.env` file cannot be used."""
    targets: dict[tuple[Location, str], tuple[Target, list[Suite]]] = {}
    for suite in suites:
        for name, target in suite.targets.targets.items():
            targets.setdefault((target.location, name), (target, []))[1].append(suite)
    if not targets:
        advice = "write .agentv/targets.yaml, or name a file in `targets`"
        if all(suite.program for suite in suites):
            advice = "their runners ask the agent; `agentevals-action validate` prints the commands"
        raise InvalidInput("the suites have no target", advice)
    matching = [
        (target, seen_by, [suite for suite in seen_by if name in suite.used_targets])
        for (_, name), (target, seen_by) in sorted(targets.items(), key=lambda entry: entry[0])
        if not names or any(fnmatch.fnmatchcase(name, glob) for glob in names)
    ]
    if not matching:
        usable = joined(sorted({name for _, name in targets}))
        problem = f"no target is called {joined(names, 'or')}"
        raise InvalidInput(problem, f"the suites can use {usable}")
    return [
        _listed(target, used_by or seen_by, bool(used_by), variables)
        for target, seen_by, used_by in matching
    ]


def _listed(
    target: Target, suites: Sequence[Suite], is_used: bool, variables: Variables
) -> _ListedTarget:
    by_suite = [variables(suite.root, suite.folder) for suite in suites]
    missing = [name for name in target.variables if not all(name in names for names in by_suite)]
    unset = plural(len(missing), "is not set", "are not set")
    note = f"no: {joined(missing)} {unset}" if missing else "yes"
    return _ListedTarget(target, suites, is_used, missing, not missing, note)


def _entry(listed: _ListedTarget) -> dict[str, Any]:
    """The JSON object of a target. The definition may contain keys, so that only the part that
    identifies the target is shown. `priceSource` is as `costSource` in the results."""
    target, name = listed.target, listed.target.priced_model()
    price, source = known_price(target, [name] if name else [])
    return {
        "name": target.name,
        "provider": target.provider,
        "model": _identify(target),
        "location": target.location,
        "price": price,
        "priceSource": source,
        "isUsed": listed.is_used,
        "missing": listed.missing,
        "usable": listed.usable,
        "note": listed.note,
        "errorKind": listed.error_kind,
    }


def _identify(target: Target) -> str:
    """The model, command or address of a target, without passwords and keys."""
    values = (getattr(target, name, None) for name in _IDENTIFYING)
    value = next(filter(None, values), "")
    if isinstance(value, list | tuple):
        return shlex.join(map(str, value))
    text = str(value)
    # An address may contain a password before its host, and a key in its query.
    is_address = re.match(r"(?:https?://|\$\{\{)", text)
    return _CREDENTIALS.sub("//", text).partition("?")[0] if is_address else text


async def _check_all(
    listed: Sequence[_ListedTarget], client: TargetClient, timeout: float, *, asks_all: bool
) -> Sequence[_ListedTarget]:
    """The targets with their answers; without `asks_all`, only targets that are used are asked."""
    slots = asyncio.Semaphore(_CONCURRENT)

    async def check(target: _ListedTarget) -> _ListedTarget:
        if not (target.is_used or asks_all):
            note = "it was not checked, because no suite uses it; name it with `--name`"
            return replace(target, usable=None, note=note)
        async with slots:
            started = monotonic()
            try:
                if target.missing:
                    raise missing_error(target.missing)
                unasked = await client.check(target.target, _request(target, timeout))
            except AttemptError as error:
                return replace(target, usable=False, note=error.sentence, error_kind=error.kind)
            note = unasked or f"answers ({monotonic() - started:.2f} s)"
            return replace(target, usable=None if unasked else True, note=note)

    try:
        return await asyncio.gather(*map(check, listed))
    finally:
        await client.close()


def _request(listed: _ListedTarget, timeout: float) -> Request:
    """A question of the first test that uses the target, because templates may use its fields."""
    uses = (
        (suite, test)
        for suite in listed.suites
        for test in suite.tests
        if suite.choose_target(test) == listed.target.name
    )
    suite, test = next(uses, (listed.suites[0], None))
    return Request(
        (_QUESTION,),
        test.id if test else "check",
        0,
        timeout,
        suite.root,
        suite.folder,
        suite=suite.path,
        conversation_id=test.conversation_id if test else None,
        metadata=test.metadata if test else {},
    )


def _row(entry: Mapping[str, Any]) -> Sequence[Styled]:
    price = entry["price"]
    prices = f"{dollars(price.input)} in, {dollars(price.output)} out" if price else ""
    style = STYLES["fail"] if entry["usable"] is False else ""
    model = printable(entry["model"], _MODEL)
    return entry["name"], entry["provider"], model, prices, (entry["note"], style)
