"""The targets that suites see: where each is defined, who uses it and as what, what it needs."""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from agentevals_action.evaluators import base
from agentevals_action.model.fault import Location
from agentevals_action.model.result import Record
from agentevals_action.model.suite import Suite, Test
from agentevals_action.model.target import Target
from agentevals_action.records import agent_name

#: What of its options says which agent or model it is; the first that is there does.
_TELLING = ("model", "deployment", "url", "command", "path")
_SERVERS = ("base_url", "endpoint")
_CREDENTIALS = re.compile(r"//[^/@]*@")


class ListedVariable(Record):
    """A variable that a target needs; `is_set` in every suite that uses the target, or sees it where none does. Never its value."""

    name: str
    is_set: bool


class ListedPrice(Record):
    """US dollars per million tokens."""

    input: float
    output: float


class ListedCheck(Record):
    """What became of a trial: `kind` (as of AttemptError), `problem` and `hint` in words when the target does not answer, `duration_ms`
    when it does."""

    answers: bool
    kind: str = ""
    problem: str = ""
    hint: str = ""
    duration_ms: float | None = None


class ListedTarget(Record):
    """One target. `what` is its model, command or address, short; `agent_of` and `judge_of` are the suites that use it so; limits as in
    its definition, None where it sets none. `check` is None when it was not tried."""

    name: str
    provider: str
    what: str
    location: Location
    is_model: bool
    agent_of: tuple[str, ...]
    judge_of: tuple[str, ...]
    judge_target: str | None
    max_concurrency: int | None
    requests_per_minute: int | None
    timeout_seconds: float | None
    retries: int
    price: ListedPrice | None
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
    """A target with the suites that see it, by path; the first test that is put to it, if any; the suites that use it."""

    target: Target
    suites: dict[str, Suite] = field(default_factory=dict)
    first: tuple[Suite, Test] | None = None
    agent_of: dict[str, None] = field(default_factory=dict)
    judge_of: dict[str, None] = field(default_factory=dict)

    @property
    def home(self) -> Suite:
        """The suite from whose folder it is tried: the first that uses it, else the first that sees it."""
        return self.suites[next(iter((*self.agent_of, *self.judge_of, *self.suites)))]


def seen_targets(suites: Iterable[Suite]) -> Sequence[SeenTarget]:
    """Every target that the suites see, each once, in the order of their files and lines."""
    seen: dict[tuple[Location, str], SeenTarget] = {}
    for suite in suites:
        own = {}
        for name, target in suite.targets.targets.items():
            own[name] = seen.setdefault((target.location, name), SeenTarget(target))
            own[name].suites[suite.path] = suite
        _note_uses(suite, own)
    return sorted(seen.values(), key=lambda one: (one.target.location.path, one.target.location.line, one.target.location.column))


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
    for evaluator in (inner for declared in test.evaluators for inner in base.every(declared)):
        if isinstance(evaluator.options, base.Options) and evaluator.options.needs_judge():
            name = suite.targets.judge(evaluator.target, agent)
            if name is not None:
                yield name


def listed(one: SeenTarget, variables: Callable[[Suite], Mapping[str, str]]) -> ListedTarget:
    """A target as it is told; `variables` are those that a suite's targets may name."""
    target, used = one.target, {**one.agent_of, **one.judge_of}
    places = [variables(suite) for path, suite in one.suites.items() if not used or path in used]
    needed = (ListedVariable(name=name, is_set=all(name in known for known in places)) for name in target.variables)
    return ListedTarget(
        name=target.name,
        provider=target.provider,
        what=_what(target.options),
        location=target.location,
        is_model=target.is_model,
        agent_of=tuple(one.agent_of),
        judge_of=tuple(one.judge_of),
        judge_target=target.judge_target,
        max_concurrency=target.max_concurrency,
        requests_per_minute=target.requests_per_minute,
        timeout_seconds=target.timeout_seconds,
        retries=target.retries,
        price=ListedPrice(input=target.price.input, output=target.price.output) if target.price else None,
        variables=tuple(needed),
    )


def _what(options: BaseModel) -> str:
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
    return _CREDENTIALS.sub("//", text).partition("?")[0] if re.match(r"(?:https?://|\$\{\{)", text) else text
