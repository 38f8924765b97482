"""The targets that suites can use: definition, uses, limits and variables."""

import re
import shlex
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentevals_action.evaluators import base
from agentevals_action.formatting import counted, dollars, plain
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.result import Record
from agentevals_action.model.suite import BrokenSuite, Suite, Test
from agentevals_action.model.target import Price, Target
from agentevals_action.model.validation.file_model import FileModel
from agentevals_action.targets.prices.cost import known_price

#: Options that identify an agent or a model; the first one that is set is shown.
_IDENTIFYING = ("model", "deployment", "url", "command", "target", "path")
_SERVERS = ("base_url", "endpoint")
_CREDENTIALS = re.compile(r"//[^/@]*@")


class ListedVariable(Record):
    """A variable that a target needs, never its value. `is_set` if it is set in every suite that
    uses the target, or in every suite that can use it if none does."""

    name: str
    is_set: bool


class ListedCheck(Record):
    """The result of a check: `duration_ms` if the target answers, `known` in words if it was not
    asked (`answers` is None), otherwise `kind` (as in AttemptError), `problem` and `hint`."""

    answers: bool | None
    known: str = ""
    kind: str = ""
    problem: str = ""
    hint: str = ""
    duration_ms: float | None = None


class TargetLimits(Record):
    """The limits of a target, None where its definition sets none, its price with its source (as
    in the results' `costSource`; `reply` if only a reply can state the cost, empty if there is
    none), and the globs of files (relative to the repository) on which its cached replies
    depend."""

    max_concurrency: int | None = None
    requests_per_minute: int | None = None
    timeout_seconds: float | None = None
    retries: int | None = None
    price: Price | None = None
    price_source: str = ""
    cache_key: tuple[str, ...] = ()

    @property
    def limit_words(self) -> list[str]:
        """What is set, in words."""
        timeout = None if self.timeout_seconds is None else plain(self.timeout_seconds)
        limits = {
            "{} concurrent": self.max_concurrency,
            "{} per minute": self.requests_per_minute,
            "{} s": timeout,
            "{} retries": self.retries,
        }
        words = [form.format(value) for form, value in limits.items() if value is not None]
        if self.price:
            prices = f"{dollars(self.price.input)} in, {dollars(self.price.output)} out"
            words.append(f"{prices} per million tokens ({self.price_source})")
        if self.cache_key:
            words.append(f"cached by {', '.join(self.cache_key)}")
        return words


class ListedTarget(TargetLimits):
    """One target. `what` is its model, command or address, shortened. `agent_of` and `judge_of` are
    the suites that use it, `unread` those that have errors and may use it. `check` is None if it
    was not checked."""

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
    def limit_words(self) -> list[str]:
        """What is set, in words, and what is known of the cost."""
        is_unknown = self.price_source == "reply"
        return [*super().limit_words, *(["cost as the reply states it"] if is_unknown else [])]

    @property
    def is_used(self) -> bool:
        """Whether a suite uses it as agent or judge."""
        return bool(self.agent_of or self.judge_of)

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the variables that are not set."""
        return tuple(variable.name for variable in self.variables if not variable.is_set)


@dataclass
class FoundTarget:
    """A target with the suites that can use it, by path, the first test that uses it as agent, and
    the paths of the suites that use it or have errors."""

    target: Target
    suites: dict[str, Suite] = field(default_factory=dict)
    first: tuple[Suite, Test] | None = None
    agent_of: dict[str, None] = field(default_factory=dict)
    judge_of: dict[str, None] = field(default_factory=dict)
    unread: dict[str, None] = field(default_factory=dict)

    @property
    def home(self) -> Suite:
        """The suite in whose folder it is checked: the first that uses it, or else can use it."""
        return self.suites[next(iter((*self.agent_of, *self.judge_of, *self.suites)))]


def find_targets(suites: Iterable[Suite], broken: Container[str] = ()) -> Sequence[FoundTarget]:
    """Every target that the suites can use, once, in the order of files and lines; `broken` are the
    paths of suites with errors."""
    found: dict[tuple[Location, str], FoundTarget] = {}
    for suite in suites:
        own = {}
        for name, target in suite.targets.targets.items():
            own[name] = found.setdefault((target.location, name), FoundTarget(target))
            own[name].suites[suite.path] = suite
            if suite.path in broken:
                own[name].unread[suite.path] = None
        _note_uses(suite, own)
    return sorted(found.values(), key=lambda one: one.target.location)


def without_tests(suite: BrokenSuite, root: Path) -> Suite:
    """The targets of a suite with errors, as a suite without tests that may use all of them."""
    folder, names = (root / suite.path).parent, tuple(suite.targets.targets)
    return Suite(suite.path, suite.path, root, folder, (), suite.targets, used_targets=names)


def _note_uses(suite: Suite, own: Mapping[str, FoundTarget]) -> None:
    for test in suite.tests:
        agent = suite.target_of(test)
        if agent is not None and agent in own:
            own[agent].agent_of[suite.path] = None
            own[agent].first = own[agent].first or (suite, test)
        for judge in _judges(suite, test, agent):
            if judge in own:
                own[judge].judge_of[suite.path] = None


def _judges(suite: Suite, test: Test, agent: str | None) -> Iterator[str]:
    for evaluator in (inner for declared in test.evaluators for inner in base.walk(declared)):
        if evaluator.options.needs_judge():
            name = suite.targets.judge(evaluator.target, agent)
            if name is not None:
                yield name


def list_target(found: FoundTarget, variables: Mapping[str, Mapping[str, str]]) -> ListedTarget:
    """The listed form of a target; `variables` are those of each suite, by its path."""
    target, used = found.target, {**found.agent_of, **found.judge_of}
    known = [variables[path] for path in found.suites if not used or path in used]
    needed = (
        ListedVariable(name=name, is_set=all(name in names for names in known))
        for name in target.variables
    )
    return ListedTarget(
        name=target.name,
        provider=target.provider,
        what=describe_options(target.options),
        location=target.location,
        is_model=target.is_model,
        agent_of=tuple(found.agent_of),
        judge_of=tuple(found.judge_of),
        unread=tuple(found.unread),
        judge_target=target.judge_target,
        variables=tuple(needed),
        **limits_of(target),
    )


def limits_of(target: Target) -> dict[str, Any]:
    """The fields of Limits."""
    model = target.options.priced_model()
    price, source = known_price(target, [model] if model else [])
    is_free = target.options.deterministic
    fields = {name: getattr(target, name, None) for name in TargetLimits.model_fields}
    return fields | {"price": price, "price_source": source or ("" if is_free else "reply")}


def describe_options(options: FileModel) -> str:
    """The model, command or address of a target, without passwords and keys."""
    fields = {name: getattr(options, name) for name in type(options).model_fields}
    what = next((_text(fields[name]) for name in _IDENTIFYING if fields.get(name)), "")
    server = next((_text(fields[name]) for name in _SERVERS if fields.get(name)), "")
    if not what and (answers := fields.get("responses")):
        what = counted(len(answers), "response")
    return f"{what} at {server}".removeprefix(" at ") if server else what


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return shlex.join(map(str, value))
    text = str(value)
    # An address may contain a password before its host, and a key in its query.
    is_address = re.match(r"(?:https?://|\$\{\{)", text)
    return _CREDENTIALS.sub("//", text).partition("?")[0] if is_address else text
