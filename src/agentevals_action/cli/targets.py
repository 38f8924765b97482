"""`targets`: every agent and model that suites may use, where it comes from, and whether it
answers."""

import asyncio
import fnmatch
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from time import monotonic

from agentevals_action.cli.target_listing import (
    ListedCheck,
    ListedTarget,
    SeenTarget,
    as_seen,
    listed,
    seen_targets,
)
from agentevals_action.errors import AttemptError, ExitCode, InvalidInput
from agentevals_action.execution.engine import Engine, open_engine
from agentevals_action.model.suite import BrokenSuite, Message, Suite
from agentevals_action.reports import console, terminal
from agentevals_action.settings import Settings
from agentevals_action.suites import checkout as wiring
from agentevals_action.system import signals
from agentevals_action.system.redaction import redact_record
from agentevals_action.targets.base import Request
from agentevals_action.targets.variables import missing_error, read_variables

#: The shortest question there is; the answer is not looked at.
_QUESTION = Message("user", "ping")
_AT_ONCE = 8  # checks
_SHOWN = 60  # characters of a command or an address
_LINE = 1_000  # characters of a line that says what is wrong
_TITLES = ("line", "target", "what it is", "used as", "limits", "needs")
_SUITES = 2  # suites that a cell of the table names; more are counted


@dataclass(frozen=True)
class Wanted:
    """What to list: of the suites in `paths` (all when empty) the targets whose names match one of
    the globs (all when there is none); `check` has those that are used, or named, tried."""

    paths: tuple[Path, ...] = ()
    names: tuple[str, ...] = ()
    check: bool = False
    as_json: bool = False

    def has(self, name: str) -> bool:
        """Whether a target is asked for."""
        return not self.names or any(fnmatch.fnmatchcase(name, glob) for glob in self.names)


def main(
    environ: Mapping[str, str], inputs: Mapping[str, str], folder: Path, wanted: Wanted
) -> int:
    """Prints the targets, or what became of a trial of each; 2 when a suite is broken or a target
    to be tried lacks what it needs, 3 when one does not answer."""
    settings = Settings.from_environ(inputs)
    checkout = wiring.Checkout.at(folder, settings, environ)
    loaded = wiring.load_all(
        checkout, settings, wiring.suite_paths(checkout, settings, wanted.paths), folder
    )
    broken = [suite for suite in loaded if isinstance(suite, BrokenSuite)]
    suites = [
        suite if isinstance(suite, Suite) else as_seen(suite, checkout.root) for suite in loaded
    ]
    if not any(suite.targets.targets for suite in suites):
        wiring.require_valid(loaded)
    _print_errors(broken)
    seen = [
        one
        for one in seen_targets(suites, {suite.path for suite in broken})
        if wanted.has(one.target.name)
    ]
    if not seen:
        _refuse_nothing(suites, wanted)
    known = _variables(environ, suites)
    with open_engine(settings, environ, folder) as engine:
        targets = [listed(one, lambda suite: known[suite.path]) for one in seen]
        if wanted.check:
            targets = signals.run(_checked(seen, targets, wanted, engine, settings.timeout))
        redactor = engine.redactor(suites)
    _print([redact_record(target, redactor) for target in targets], wanted)
    return ExitCode.INVALID if broken else _exit_code(targets)


def _print_errors(broken: Sequence[BrokenSuite]) -> None:
    for diagnostic in dict.fromkeys(
        str(diagnostic) for suite in broken for diagnostic in suite.errors
    ):
        print(terminal.printable(diagnostic, _LINE), file=sys.stderr)
    for suite in broken:
        print(
            f"warning: {terminal.printable(suite.path)} has faults: which targets its tests use is not known",
            file=sys.stderr,
        )


def _refuse_nothing(suites: Sequence[Suite], wanted: Wanted) -> None:
    known = sorted({name for suite in suites for name in suite.targets.targets})
    if known:
        raise InvalidInput(
            f"no target is called {' or '.join(wanted.names)}", f"the suites see {', '.join(known)}"
        )
    raise InvalidInput(
        "the suites see no target", "write .agentv/targets.yaml, or name a file in `targets`"
    )


def _variables(
    environ: Mapping[str, str], suites: Sequence[Suite]
) -> Mapping[str, Mapping[str, str]]:
    """What `${{ }}` may name, by the suite's path; InvalidInput when a `.env` file cannot be
    used."""
    read = cache(lambda root, folder: read_variables(environ, root, folder))
    try:
        return {suite.path: read(suite.root, suite.folder) for suite in suites}
    except AttemptError as error:
        raise InvalidInput(str(error), error.hint) from error


async def _checked(
    seen: Sequence[SeenTarget],
    targets: Sequence[ListedTarget],
    wanted: Wanted,
    engine: Engine,
    timeout: float,
) -> list[ListedTarget]:
    """The same targets, those that are to be tried with what became of it; they are tried side by
    side."""
    turns = asyncio.Semaphore(_AT_ONCE)
    total = sum(_is_tried(target, wanted) for target in targets)
    with console.asking(total, "targets") as asked:

        async def tried(one: SeenTarget, target: ListedTarget) -> ListedTarget:
            if not _is_tried(target, wanted):
                return target
            async with turns:
                check = await _try(one, target, engine, timeout)
            asked(target.name)
            return replace(target, check=check)

        try:
            return list(await asyncio.gather(*map(tried, seen, targets)))
        finally:
            await engine.close()


def _is_tried(target: ListedTarget, wanted: Wanted) -> bool:
    return target.used or bool(wanted.names)


async def _try(
    one: SeenTarget, target: ListedTarget, engine: Engine, timeout: float
) -> ListedCheck:
    started = monotonic()
    try:
        if target.missing:
            raise missing_error(target.missing)
        await engine.calls.check(one.target, _request(one, timeout))
    except AttemptError as error:
        return ListedCheck(answers=False, kind=error.kind, problem=str(error), hint=error.hint)
    return ListedCheck(answers=True, duration_ms=round((monotonic() - started) * 1000, 1))


def _request(one: SeenTarget, timeout: float) -> Request:
    """A question from the suite that uses the target; an agent's templates find the fields of a
    test of theirs."""
    if one.first is None:
        return Request(
            (_QUESTION,), "check", 0, timeout, one.home.root, one.home.folder, suite=one.home.path
        )
    suite, test = one.first
    asked = Request((_QUESTION,), test.id, 0, timeout, suite.root, suite.folder, suite=suite.path)
    return replace(asked, conversation_id=test.conversation_id, metadata=test.metadata)


def _exit_code(targets: Sequence[ListedTarget]) -> int:
    failed = [target.check for target in targets if target.check and not target.check.answers]
    if any(check.kind == "configuration" for check in failed):
        return ExitCode.INVALID
    return ExitCode.COULD_NOT_TELL if failed else ExitCode.PASSED


def _print(targets: Sequence[ListedTarget], wanted: Wanted) -> None:
    if wanted.as_json:
        # ASCII alone: a lone surrogate in a name could not be written otherwise.
        print(json.dumps([target.model_dump(mode="json") for target in targets], indent=2))
    elif wanted.check:
        _print_checks(targets)
    elif sys.stdout.isatty():
        for path, defined in groupby(targets, key=lambda target: target.location.path):
            console.table(path, _TITLES, map(_row, defined), sys.stdout)
    else:
        console.outline((line for target in targets for line in _lines(target)), sys.stdout)


def _print_checks(targets: Sequence[ListedTarget]) -> None:
    tried = [target for target in targets if target.check]
    for target in tried:
        if check := target.check:
            text = (
                f"answers ({(check.duration_ms or 0) / 1000:.2f} s)"
                if check.answers
                else "; ".join(filter(None, (check.problem, check.hint)))
            )
            console.told(check.answers, target.name, text, sys.stdout)
    if left := len(targets) - len(tried):
        is_used = (
            "one target is used by no suite and was"
            if left == 1
            else f"{left} targets are used by no suite and were"
        )
        print(f"{is_used} not tried; name it with `--name` to try it", file=sys.stderr)


def _row(target: ListedTarget) -> Sequence[str]:
    what = f"{target.provider} {terminal.printable(target.what, _SHOWN)}".rstrip()
    uses, limits, needs = (
        "; ".join(_uses(target, _SUITES)),
        ", ".join(_limits(target)),
        ", ".join(_needs(target)),
    )
    return str(target.location.line), target.name, what, uses, limits, needs


def _lines(target: ListedTarget) -> Iterator[console.Line]:
    place = f"{target.location.path}:{target.location.line}"
    what = f" {terminal.printable(target.what, _SHOWN)}" if target.what else ""
    yield console.Line(0, target.name, f"{target.provider}{what} ({place})")
    for label, words in (
        ("used as", _uses(target)),
        ("limits", _limits(target)),
        ("needs", _needs(target)),
    ):
        if words:
            yield console.Line(1, label, ("; " if label == "used as" else ", ").join(words))


def _uses(target: ListedTarget, most: int | None = None) -> Sequence[str]:
    """The words for who uses a target; more suites than `most` are counted."""

    def told(suites: Sequence[str]) -> str:
        return ", ".join(suites) if most is None or len(suites) <= most else f"{len(suites)} suites"

    uses = [
        f"{word} of {told(suites)}"
        for word, suites in (("agent", target.agent_of), ("judge", target.judge_of))
        if suites
    ]
    uses += [f"perhaps by {told(target.unread)}"] if target.unread else []
    return [
        *(uses or ["nothing"]),
        *([f"judged by {target.judge_target}"] if target.judge_target else []),
    ]


def _limits(target: ListedTarget) -> Sequence[str]:
    return [
        *target.words,
        *([f"cached by {', '.join(target.cache_key)}"] if target.cache_key else []),
    ]


def _needs(target: ListedTarget) -> Sequence[str]:
    return [
        variable.name if variable.is_set else f"{variable.name} (not set)"
        for variable in target.variables
    ]
