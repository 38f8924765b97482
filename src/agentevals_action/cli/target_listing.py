"""The targets that suites see: where each is defined, who uses it and as what, what it needs."""

import re
import shlex
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentevals_action.evaluators import base
from agentevals_action.formatting import dollars, plain
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.file_model import FileModel
from agentevals_action.model.result import Record
from agentevals_action.model.suite import BrokenSuite, Suite, Test
from agentevals_action.model.target import Target
from agentevals_action.results.build import agent_name

#: What of its options says which agent or model it is; the first that is there does.
_TELLING = ("model", "deployment", "url", "command", "path")
_SERVERS = ("base_url", "endpoint")
_CREDENTIALS = re.compile(r"//[^/@]*@")


class ListedVariable(Record):
    """A variable that a target needs; `is_set` in every suite that uses the target, or sees it
    where none does. Never its value."""

    name: str
    is_set: bool


class ListedPrice(Record):
    """US dollars per million tokens."""

    input: float
    output: float


class ListedCheck(Record):
    """What became of a trial: `kind` (as of AttemptError), `problem` and `hint` in words when the
    target does not answer, `duration_ms` when it does."""

    answers: bool
    kind: str = ""
    problem: str = ""
    hint: str = ""
    duration_ms: float | None = None


class Limits(Record):
    """The limits of a target as in its definition, None where it sets none, what it costs, and the
    globs of files (relative to the repository) by which replies are cached."""

    max_concurrency: int | None = None
    requests_per_minute: int | None = None
    timeout_seconds: float | None = None
    retries: int | None = None
    price: ListedPrice | None = None
    cache_key: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """What is set, each in words."""
        limits = {
            "{} at once": self.max_concurrency,
            "{} a minute": self.requests_per_minute,
            "{} s": None if self.timeout_seconds is None else plain(self.timeout_seconds),
            "{} retries": self.retries,
        }
        told = [words.format(value) for words, value in limits.items() if value is not None]
        return (
            *told,
            *(
                [
                    f"{dollars(self.price.input)} in, {dollars(self.price.output)} out per million tokens"
                ]
                if self.price
                else []
            ),
        )


class ListedTarget(Limits):
    """One target. `what` is its model, command or address, short; `agent_of` and `judge_of` are the
    suites that use it so, `unread` those that see it and have faults, so that it is not known
    whether they do. `check` is None when it was not tried."""

    name: str
    provider: str
    what: str
    location: Location
    is_model: bool
    agent_of: tuple[str, ...]
    judge_of: tuple[str, ...]
    unread: tuple[str, ...]
    judge_target: str | None
    variables: tuple[ListedVariable, ...]
    check: ListedCheck | None = None

    @property
    def used(self) -> bool:
        """Whether a suite's tests are put to it or judged by it."""
        return bool(self.agent_of or self.judge_of)

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the variables that are not set."""
        return tuple(variable.name for variable in self.variables if not variable.is_set)


@dataclass
class SeenTarget:
    """A target with the suites that see it, by path; the first test that is put to it, if any; the
    suites that use it, and those of which that could not be read."""

    target: Target
    suites: dict[str, Suite] = field(default_factory=dict)
    first: tuple[Suite, Test] | None = None
    agent_of: dict[str, None] = field(default_factory=dict)
    judge_of: dict[str, None] = field(default_factory=dict)
    unread: dict[str, None] = field(default_factory=dict)

    @property
    def home(self) -> Suite:
        """The suite from whose folder it is tried: the first that uses it, else the first that sees
        it."""
        return self.suites[next(iter((*self.agent_of, *self.judge_of, *self.suites)))]


def seen_targets(suites: Iterable[Suite], broken: Container[str] = ()) -> Sequence[SeenTarget]:
    """Every target that the suites see, each once, in the order of their files and lines; `broken`
    has the paths of those with faults."""
    seen: dict[tuple[Location, str], SeenTarget] = {}
    for suite in suites:
        own = {}
        for name, target in suite.targets.targets.items():
            own[name] = seen.setdefault((target.location, name), SeenTarget(target))
            own[name].suites[suite.path] = suite
            if suite.path in broken:
                own[name].unread[suite.path] = None
        _note_uses(suite, own)
    return sorted(
        seen.values(),
        key=lambda one: (
            one.target.location.path,
            one.target.location.line,
            one.target.location.column,
        ),
    )


def as_seen(suite: BrokenSuite, root: Path) -> Suite:
    """A suite with faults as far as its targets go, without tests; all its targets count as used,
    since any may be."""
    folder, names = (root / suite.path).parent, tuple(suite.targets.targets)
    return Suite(suite.path, suite.path, root, folder, (), suite.targets, used_targets=names)


def _note_uses(suite: Suite, own: Mapping[str, SeenTarget]) -> None:
    for test in suite.tests:
        agent = agent_name(suite, test)
        if agent is not None and agent in own:
            own[agent].agent_of[suite.path] = None
            own[agent].first = own[agent].first or (suite, test)
        for judge in _judges(suite, test, agent):
            if judge in own:
                own[judge].judge_of[suite.path] = None


def _judges(suite: Suite, test: Test, agent: str | None) -> Iterator[str]:
    for evaluator in (inner for declared in test.evaluators for inner in base.walk(declared)):
        if isinstance(evaluator.options, base.EvaluatorOptions) and evaluator.options.needs_judge():
            name = suite.targets.judge(evaluator.target, agent)
            if name is not None:
                yield name


def listed(one: SeenTarget, variables: Callable[[Suite], Mapping[str, str]]) -> ListedTarget:
    """A target as it is told; `variables` are those that a suite's targets may name."""
    target, used = one.target, {**one.agent_of, **one.judge_of}
    places = [variables(suite) for path, suite in one.suites.items() if not used or path in used]
    needed = (
        ListedVariable(name=name, is_set=all(name in known for known in places))
        for name in target.variables
    )
    return ListedTarget(
        name=target.name,
        provider=target.provider,
        what=what_is(target.options),
        location=target.location,
        is_model=target.is_model,
        agent_of=tuple(one.agent_of),
        judge_of=tuple(one.judge_of),
        unread=tuple(one.unread),
        judge_target=target.judge_target,
        variables=tuple(needed),
        **limits_of(target),
    )


def limits_of(target: Target) -> dict[str, Any]:
    """The fields of Limits."""
    return {
        "max_concurrency": target.max_concurrency,
        "requests_per_minute": target.requests_per_minute,
        "timeout_seconds": target.timeout_seconds,
        "retries": target.retries,
        "price": ListedPrice(input=target.price.input, output=target.price.output)
        if target.price
        else None,
        "cache_key": target.cache_key,
    }


def what_is(options: FileModel) -> str:
    """Which agent or model a target is, in a few words: its model, command or address, without the
    passwords and keys of that."""
    fields = {name: getattr(options, name) for name in type(options).model_fields}
    told = next((_text(fields[name]) for name in _TELLING if fields.get(name)), "")
    server = next((_text(fields[name]) for name in _SERVERS if fields.get(name)), "")
    if not told and (answers := fields.get("responses")):
        told = f"{len(answers)} response{'' if len(answers) == 1 else 's'}"
    return f"{told} at {server}".removeprefix(" at ") if server else told


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return shlex.join(map(str, value))
    text = str(value)
    # An address may have a password in front, and a key behind its question mark.
    return (
        _CREDENTIALS.sub("//", text).partition("?")[0]
        if re.match(r"(?:https?://|\$\{\{)", text)
        else text
    )
