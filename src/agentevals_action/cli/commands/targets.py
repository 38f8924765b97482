"""`targets`: every agent and model that suites can use, and whether it answers."""

import asyncio
import fnmatch
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from time import monotonic

import click

from agentevals_action.cli import output
from agentevals_action.cli.loaded_suites import load_suites
from agentevals_action.cli.options import READ_INPUTS, input_options, json_option, paths_argument
from agentevals_action.errors import AttemptError, ExitCode, InvalidInput
from agentevals_action.escaping import printable
from agentevals_action.execution.engine import open_scratch
from agentevals_action.execution.secrets import keeping_secrets
from agentevals_action.formatting import dollars, joined, plural
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.messages import Message
from agentevals_action.model.result import Record
from agentevals_action.model.suite import Suite
from agentevals_action.model.target import Price, ProviderContext, Request, Target
from agentevals_action.reports.console import STYLES
from agentevals_action.reports.terminal import Styled
from agentevals_action.system.child_environment import ChildContext
from agentevals_action.system.isolation import NO_ISOLATION
from agentevals_action.system.redaction import redact_reply
from agentevals_action.targets.calls.client import TargetClient, Variables
from agentevals_action.targets.prices import known_price
from agentevals_action.targets.variables import missing_error, read_variables

_QUESTION = Message("user", "Reply with OK.")
_CONCURRENT = 8  # checks
_MODEL = 60  # characters of a model, a command or an address
_TITLES = ("target", "provider", "model", "price per million tokens", "usable")
#: Options that identify an agent or a model; the first one that is set is shown.
_IDENTIFYING = ("model", "deployment", "url", "command", "target", "path")
_CREDENTIALS = re.compile(r"//[^/@]*@")


class ListedTarget(Record):
    """One target. `model` is its model, command or address, `missing` the names of the variables
    that it needs and that are not set. `price_source` as in the results' `costSource`. `usable` is
    None if a check did not ask it, `note` says so in words; `error_kind` as in AttemptError."""

    name: str
    provider: str
    model: str
    location: Location
    price: Price | None
    price_source: str
    is_used: bool
    missing: tuple[str, ...]
    usable: bool | None
    note: str
    error_kind: str = ""


@dataclass(frozen=True)
class _FoundTarget:
    """A target, and the suites in whose folders it has its variables: those that use it, or all
    that can if none does."""

    target: Target
    suites: Sequence[Suite]
    is_used: bool


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
    found = _find_targets(suites, names)
    environ, settings = loaded.environ, loaded.settings
    variables = cache(partial(read_variables, environ))
    listed: Sequence[ListedTarget] = [_describe(entry, variables) for entry in found]
    with keeping_secrets(suites, variables, environ, settings.env):
        if check:
            async with open_scratch(NO_ISOLATION) as scratch:
                children = ChildContext.from_environ(environ, settings.env)
                client = TargetClient(variables, ProviderContext({}, children, scratch))
                asked = [entry if entry.is_used or names else None for entry in found]
                listed = await _check_all(asked, listed, client, settings.timeout)
        listed = [redact_reply(target) for target in listed]
    if as_json:
        output.print_json([target.model_dump(mode="json") for target in listed])
    else:
        for path, targets in groupby(listed, key=lambda target: target.location.path):
            output.print_table(_TITLES, map(_row, targets), texts=range(len(_TITLES)), heading=path)
    kinds = {target.error_kind for target in listed} - {""}
    if "configuration" in kinds:
        return ExitCode.INVALID
    return ExitCode.INCONCLUSIVE if kinds else ExitCode.PASSED


def _find_targets(suites: Iterable[Suite], names: Sequence[str]) -> Sequence[_FoundTarget]:
    """Every target that the suites can use and whose name matches, in the order of files and lines;
    InvalidInput if there is none."""
    found: dict[tuple[Location, str], tuple[Target, list[Suite]]] = {}
    for suite in suites:
        for name, target in suite.targets.targets.items():
            found.setdefault((target.location, name), (target, []))[1].append(suite)
    if not found:
        raise InvalidInput(
            "the suites have no target", "write .agentv/targets.yaml, or name a file in `targets`"
        )
    matching = [
        (target, seen_by, [suite for suite in seen_by if name in suite.used_targets])
        for (_, name), (target, seen_by) in sorted(found.items(), key=lambda item: item[0])
        if not names or any(fnmatch.fnmatchcase(name, glob) for glob in names)
    ]
    if not matching:
        known = joined(sorted({name for _, name in found}))
        problem = f"no target is called {joined(names, 'or')}"
        raise InvalidInput(problem, f"the suites can use {known}")
    return [
        _FoundTarget(target, used_by or seen_by, bool(used_by))
        for target, seen_by, used_by in matching
    ]


def _describe(entry: _FoundTarget, variables: Variables) -> ListedTarget:
    """The listed form of a target; InvalidInput if a `.env` file cannot be used."""
    target, name = entry.target, entry.target.priced_model()
    try:
        known = [variables(suite.root, suite.folder) for suite in entry.suites]
    except AttemptError as error:
        raise InvalidInput(str(error), error.hint) from error
    price, source = known_price(target, [name] if name else [])
    missing = [name for name in target.variables if not all(name in names for names in known)]
    unset = plural(len(missing), "is not set", "are not set")
    return ListedTarget(
        name=target.name,
        provider=target.provider,
        model=_identify(target),
        location=target.location,
        price=price,
        price_source=source,
        is_used=entry.is_used,
        missing=tuple(missing),
        usable=not missing,
        note=f"no: {joined(missing)} {unset}" if missing else "yes",
    )


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
    asked: Sequence[_FoundTarget | None],
    listed: Sequence[ListedTarget],
    client: TargetClient,
    timeout: float,
) -> Sequence[ListedTarget]:
    """The same targets with the answers of those that are `asked`."""
    slots = asyncio.Semaphore(_CONCURRENT)

    async def check(entry: _FoundTarget | None, target: ListedTarget) -> ListedTarget:
        if entry is None:
            note = "it was not checked, because no suite uses it; name it with `--name`"
            return target.model_copy(update={"usable": None, "note": note})
        async with slots:
            started = monotonic()
            try:
                if target.missing:
                    raise missing_error(target.missing)
                unasked = await client.check(entry.target, _request(entry, timeout))
            except AttemptError as error:
                problem = {"usable": False, "note": error.sentence, "error_kind": error.kind}
                return target.model_copy(update=problem)
            note = unasked or f"answers ({monotonic() - started:.2f} s)"
            usable = None if unasked else True
            return target.model_copy(update={"usable": usable, "note": note})

    try:
        return await asyncio.gather(*map(check, asked, listed))
    finally:
        await client.close()


def _request(entry: _FoundTarget, timeout: float) -> Request:
    """A question of the first test that uses the target, because templates may use its fields."""
    uses = (
        (suite, test)
        for suite in entry.suites
        for test in suite.tests
        if suite.target_of(test) == entry.target.name
    )
    suite, test = next(uses, (entry.suites[0], None))
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


def _row(target: ListedTarget) -> Sequence[Styled]:
    price = target.price
    prices = f"{dollars(price.input)} in, {dollars(price.output)} out" if price else ""
    style = STYLES["fail"] if target.usable is False else ""
    model = printable(target.model, _MODEL)
    return target.name, target.provider, model, prices, (target.note, style)
