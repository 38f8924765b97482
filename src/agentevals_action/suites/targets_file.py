"""Reads `.agentv/targets.yaml`, with `extends` applied and `${{ }}` unresolved, and checks that the
targets exist which answer and judge the tests of a suite."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field

from agentevals_action.formatting import one_of
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.file_model import FileModel, ListOf, NonEmpty, fields_of
from agentevals_action.model.suite import NamedFile, Suite
from agentevals_action.model.target import Price, Target, TargetTable
from agentevals_action.suites import dialects
from agentevals_action.suites.catalog import Catalog
from agentevals_action.suites.evaluators import Declared
from agentevals_action.suites.files.diagnostics import Findings, did_you_mean
from agentevals_action.suites.files.positions import Items, Map, plain
from agentevals_action.suites.files.validation_errors import describe_value
from agentevals_action.suites.files.yaml_reader import read_settings_file
from agentevals_action.suites.find import CONFIG, FOLDER, Config, nearest_file, read_config
from agentevals_action.system.paths import Folder
from agentevals_action.system.regular_files import is_present
from agentevals_action.targets import base, variables

NAME = "targets.yaml"
_MOST_PARENTS = 20

_MISSING = "there is no target"

Read = TypeVar("Read")
Providers = Mapping[str, type[base.ProviderOptions]]


def _read_globs(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(one, str) and one for one in value):
        return value
    advice = 'write the files that the agent consists of, as `["agent/**", "*.md"]`'
    raise ValueError(f"{describe_value(value)} is not a list of globs; {advice}")


class _Price(FileModel):
    """US dollars for a million tokens."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]


class _Target(FileModel):
    """The fields that all targets have in common; the others belong to the provider. `cache_key`
    are globs, relative to the repository, of the files that the agent consists of."""

    name: NonEmpty
    provider: NonEmpty
    extends: NonEmpty | None = None
    judge_target: NonEmpty | None = None
    max_concurrency: Annotated[int, Field(ge=1)] | None = None
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    timeout_seconds: Annotated[float, Field(gt=0)] | None = None
    price: _Price | None = None
    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    cache_key: Annotated[ListOf[NonEmpty], BeforeValidator(_read_globs)] = ()


_SPELLINGS = {**dict.fromkeys(fields_of(_Target), ()), "judge_target": ("grader_target",)}
_REFUSED = {
    "use_target": (
        "of AgentV is not supported",
        "write `extends` with the name of the other target",
    ),
}


@dataclass(frozen=True)
class TargetsFile:
    """The content of a targets file. `unusable` are targets of providers that cannot run here, with
    the error for their use; `invalid` are targets whose errors are already reported. `is_complete`
    is false when the list could not be read."""

    path: str
    targets: Mapping[str, Target] = field(default_factory=dict)
    unusable: Mapping[str, Diagnostic] = field(default_factory=dict)
    invalid: frozenset[str] = frozenset()
    is_complete: bool = True

    @property
    def known(self) -> tuple[str, ...]:
        """The names that suites may use."""
        return tuple(sorted((*self.targets, *self.unusable)))


def read_targets(file: Path, root: Path, providers: Providers, findings: Findings) -> TargetsFile:
    """Reads a targets file; its errors go to `findings`."""
    path = file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
    entries = _read_entries(file, path, root, findings)
    if entries is None:
        return TargetsFile(path, is_complete=False)
    folder = Folder(root, file.parent.resolve())
    targets: dict[str, Target] = {}
    unusable: dict[str, Diagnostic] = {}
    for name, entry in entries.items():
        merged = _inherit(name, entries, findings)
        if merged is None:
            continue
        provider = merged.get("provider")
        if isinstance(provider, str) and dialects.type_key(provider) == "vscode":
            problem = "the provider `vscode` needs a desktop, which a runner has not"
            location = merged.value_location("provider")
            unusable[name] = Diagnostic(location, problem, "use a `cli` target")
        elif target := _read_target(merged, entry, providers, folder, findings):
            targets[name] = target
    read = TargetsFile(path, targets, unusable, frozenset(entries) - {*targets, *unusable})
    for target in targets.values():
        judge, entry = target.judge_target, entries[target.name]
        key = "judge_target" if "judge_target" in entry else "grader_target"
        if judge is not None and judge not in entries and key in entry:
            problem = f"there is no target `{judge}` to judge"
            findings.error(entry.value_location(key), problem, _did_you_mean(judge, read.known))
    return read


def _read_entries(
    file: Path, path: str, root: Path, findings: Findings
) -> Mapping[str, Map] | None:
    if not is_present(file):
        problem = "there is no such targets file"
        findings.error(Location(path), problem, "correct the input `targets`")
        return None
    data, is_read = read_settings_file(file, root, path, findings)
    if not is_read:
        return None
    listed = data.get("targets") if isinstance(data, Map) else data
    if isinstance(listed, Items):
        return _by_name(listed, findings)
    location = data.value_location("targets") if isinstance(data, Map) else Location(path)
    advice = "write a list of targets, or an object with `targets`"
    findings.error(location, f"the targets are {describe_value(listed)}", advice)
    return None


def _by_name(listed: Items, findings: Findings) -> Mapping[str, Map]:
    entries: dict[str, Map] = {}
    for value, location in listed.located():
        if not isinstance(value, Map):
            advice = "write an object with `name` and `provider`"
            findings.error(location, f"a target is {describe_value(value)}", advice)
            continue
        name = value.get("name")
        if not isinstance(name, str) or not name:
            problem = "this target has no `name`"
            if "name" in value:
                problem = f"`name` is {describe_value(name)}"
            advice = "write the name by which suites refer to it"
            findings.error(value.value_location("name"), problem, advice)
        elif name in entries:
            problem = f"there is a second target `{name}`"
            findings.error(value.value_location("name"), problem, "give each its own name")
        else:
            entries[name] = value
    return entries


def _inherit(name: str, entries: Mapping[str, Map], findings: Findings) -> Map | None:
    """The entry with the fields of the targets that it extends; None, with an error, when one of
    them does not exist or the chain is a circle."""
    entry = entries[name]
    chain = [name]
    merged = Map(entry.source, entry.start)
    while True:
        for key in entry:
            if key not in merged and (key != "extends" or len(chain) == 1):
                merged.adopt(entry, key, key)
        parent = entry.get("extends")
        if not isinstance(parent, str):
            return merged
        problem = advice = ""
        if parent not in entries:
            problem = f"there is no target `{parent}` to extend"
            advice = _did_you_mean(parent, entries)
        elif parent in chain:
            problem = f"the target `{name}` extends itself, by {' → '.join((*chain, parent))}"
            advice = "break the circle"
        elif len(chain) > _MOST_PARENTS:
            problem = f"the target `{name}` extends more than {_MOST_PARENTS} others in turn"
            advice = "make the chain shorter"
        if problem:
            # A missing parent is reported once, for the target that names it.
            if parent in entries or len(chain) == 1:
                findings.error(entry.value_location("extends"), problem, advice)
            return None
        chain.append(parent)
        entry = entries[parent]


def _did_you_mean(name: str, known: Mapping[str, Any] | tuple[str, ...]) -> str:
    return did_you_mean(name, known, f"write one of {one_of(sorted(known))}")


def _read_target(
    merged: Map, own: Map, providers: Providers, folder: Folder, findings: Findings
) -> Target | None:
    provider = merged.get("provider")
    options = providers.get(dialects.type_key(provider)) if isinstance(provider, str) else None
    if isinstance(provider, str) and provider and options is None:
        known = one_of(sorted({one.provider for one in providers.values()}))
        problem = f"the provider `{provider}` is unknown"
        advice = did_you_mean(dialects.type_key(provider), providers, f"write one of {known}")
        findings.error(merged.value_location("provider"), problem, advice)
        return None
    own_fields = dialects.model_shape("", options).fields if options else {}
    refused = {name: reason for name, reason in _REFUSED.items() if name not in own_fields}
    shape = dialects.Shape("target", {**_SPELLINGS, **own_fields}, refused)
    dialects.fold(own, shape, findings)
    data = dialects.fold(merged, shape, Findings())
    common = findings.read(_Target, data, "target")
    if options is None:
        return None
    valid = findings.read(options, data, f"`{options.provider}` target", folder)
    if common is None or valid is None:
        return None
    return Target(
        name=common.name,
        provider=options.provider,
        options=valid,
        definition=plain(merged),
        location=merged.location,
        is_model=options.is_model,
        judge_target=common.judge_target,
        variables=tuple(dict.fromkeys((*variables.names_in(merged), *valid.variables()))),
        max_concurrency=common.max_concurrency,
        retries=common.retries,
        timeout_seconds=common.timeout_seconds,
        price=Price(common.price.input, common.price.output) if common.price else None,
        requests_per_minute=common.requests_per_minute,
        cache_key=common.cache_key,
    )


@dataclass(frozen=True)
class TargetUse:
    """The targets that a suite sees.

    `file` is None without a complete targets file: nothing is checked then, and the tests that need
    a target end in that error. `suite` is the location of its root, `default_location` that of the
    name of its target in the suite or the configuration. `used` collects the targets that answer
    and judge tests, `declared` is the suite's own, even if no test uses it. `files` are the files
    that were read, `timeout_seconds` the limit in `.agentv/config.yaml`."""

    table: TargetTable
    file: TargetsFile | None
    suite: Location
    suite_target: str | None = None
    default_location: Location | None = None
    files: tuple[NamedFile, ...] = ()
    timeout_seconds: float | None = None
    used: dict[str, None] = field(default_factory=dict)
    declared: dict[str, None] = field(default_factory=dict)

    def check_default(self, findings: Findings) -> None:
        """Adds an error when the suite's own target does not exist, even if no test uses it."""
        if not self.suite_target or self.file is None or self.table.agent_override:
            return
        location = self.default_location or self.suite
        if name := self._existing(self.suite_target, location, _MISSING, findings):
            self.declared[name] = None

    def agent(
        self, wanted: str | None, location: Location | None, findings: Findings
    ) -> str | None:
        """Name of the target that answers a test; None, with an error, when it does not exist."""
        name = self.table.agent(wanted or self.suite_target)
        if self.file is None:
            return name
        if name is None and "default" in (*self.file.unusable, *self.file.invalid):
            name = "default"
        if name is None:
            problem = f"no target is named, and {self.file.path} has none called `default`"
            advice = f"write `execution: {{target: …}}` with {self._known()}"
            findings.error(self.suite, problem, advice)
            return None
        if self.table.agent_override:
            return self._use(name, self.suite, "the input `target` names", findings)
        if not wanted or not location:
            location = self.default_location or self.suite
        return self._use(name, location, _MISSING, findings)

    def judge(self, declared: Declared, agent: str | None, findings: Findings) -> None:
        """Adds an error when an evaluator that asks a judge has none."""
        evaluator = declared.evaluator
        if self.file is None or (agent is None and not evaluator.target):
            return
        name = self.table.judge(evaluator.target, agent)
        if evaluator.target:
            location = declared.target_location or evaluator.location
            self._use(evaluator.target, location, _MISSING, findings)
        elif name is None:
            problem = (
                f"`{evaluator.name}` has no judge: the target `{agent}` is not a model and names "
                "no `judge_target`"
            )
            here = ", or `target` here" if declared.options.asks_judge else ""
            advice = f"write `judge_target` in {self.file.path}{here}"
            findings.error(evaluator.location, problem, advice)
        elif name == self.table.judge_override:
            self._use(name, self.suite, "the input `judge-target` names", findings)
        else:
            self._use(name, evaluator.location, _MISSING, findings)

    def _use(self, name: str, location: Location, problem: str, findings: Findings) -> str | None:
        known = self._existing(name, location, problem, findings)
        if known and known in self.table.targets:
            self.used[known] = None
        return known

    def _existing(
        self, name: str, location: Location, problem: str, findings: Findings
    ) -> str | None:
        if self.file is None or name in self.table.targets:
            return name
        if error := self.file.unusable.get(name):
            findings.error(error.location, error.problem, error.advice)
        elif name not in self.file.invalid:
            where = "" if problem == _MISSING else f", which is not in {self.file.path}"
            advice = did_you_mean(name, self.file.known, f"write {self._known()}")
            findings.error(location, f"{problem} `{name}`{where}", advice)
        return None

    def _known(self) -> str:
        known = self.file.known if self.file else ()
        return one_of(known) if known else "the name of a target, once there is one"

    def command_files(self) -> Iterable[NamedFile]:
        """The files in the commands of the used targets, and of the suite's own."""
        for name in dict.fromkeys((*self.declared, *self.used)):
            for path in self.table.targets[name].files:
                yield NamedFile(path, "target's command")


def undeclared_target(suite: Suite) -> Diagnostic | None:
    """The error of a suite that no targets file applies to, whose tests need a target."""
    test = next(iter(suite.tests), None)
    if test is None or suite.targets.path is not None:
        return None
    name = suite.target_of(test)
    problem = f"the target `{name}` is not declared" if name else "its tests have no target"
    location = test.location if test.target else Location(suite.path)
    return Diagnostic(
        location,
        f"{problem}: there is no `{FOLDER}/{NAME}`",
        "write it, or run `agentevals-action init`",
    )


def find_targets(
    folder: Folder, catalog: Catalog, wanted: str | None, suite: Map, findings: Findings
) -> TargetUse:
    """Reads the targets file and the configuration for the suite whose root is `suite` and names
    the target `wanted`."""
    files = []
    root = folder.root
    config = Config("")
    if path := nearest_file(folder.path, root, CONFIG):
        config = _cached(catalog, path, findings, lambda own: read_config(path, root, own))
        if config.target or config.timeout_seconds:
            files.append(NamedFile(config.path, "configuration"))
    listed = None
    if file := catalog.targets_file or nearest_file(folder.path, root, NAME):
        listed = _cached(
            catalog, file, findings, lambda own: read_targets(file, root, catalog.providers, own)
        )
        files.append(NamedFile(listed.path, "targets file"))
    table = TargetTable(
        path=listed.path if listed else None,
        targets={
            name: replace(target, files=_command_files(target, folder, findings))
            for name, target in (listed.targets if listed else {}).items()
        },
        agent_override=catalog.target,
        judge_override=catalog.judge_target,
        default_target=config.target,
    )
    return TargetUse(
        table,
        listed if listed and listed.is_complete else None,
        suite.location,
        wanted,
        suite["execution"].value_location("target") if wanted else config.target_location,
        tuple(files),
        config.timeout_seconds,
    )


def _command_files(target: Target, folder: Folder, findings: Findings) -> tuple[str, ...]:
    if not isinstance(target.options, base.ProviderOptions):
        return ()
    try:
        return tuple(target.options.files(folder))
    except (OSError, ValueError) as error:
        problem = f"a file of the target `{target.name}` cannot be used: {error}"
        findings.error(target.location, problem, "name a file of the repository")
        return ()


def _cached(
    catalog: Catalog, file: Path, findings: Findings, read: Callable[[Findings], Read]
) -> Read:
    """Reads a file once for all suites that share it; each of them gets its errors."""
    status = file.stat() if file.exists() else None
    key = (file, status and (status.st_mtime_ns, status.st_size))
    if key not in catalog.cache:
        own = Findings()
        catalog.cache[key] = (read(own), own)
    value, own = catalog.cache[key]
    findings.add(own)
    result: Read = value
    return result
