"""Reads `.agentv/targets.yaml`, with `extends` applied and `${{ }}` unresolved, and checks that the
targets exist which answer and judge the tests of a suite."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import one_of
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.file_model import ListOf, NonEmpty, TargetModel, fields_of
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
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import is_present
from agentevals_action.targets import base, variables

NAME = "targets.yaml"
_MOST_PARENTS = 20

_MISSING = "there is no target"
_SHELL_NAME = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")

Read = TypeVar("Read")
Providers = Mapping[str, type[base.ProviderOptions]]


def _read_globs(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(one, str) and one for one in value):
        return value
    advice = 'write the files that the agent consists of, as `["agent/**", "*.md"]`'
    raise ValueError(f"{describe_value(value)} is not a list of globs; {advice}")


def _refuse_batching(value: bool) -> bool:
    if value:
        raise ValueError("it is not supported: each test is a separate call; leave it out")
    return value


_Dollars = Annotated[float, Field(ge=0)]


class _Price(TargetModel):
    """US dollars for a million tokens. Cached input costs as much as other input by default."""

    input: _Dollars
    output: _Dollars
    cached_input: _Dollars | None = None
    cache_write: _Dollars | None = None


class _Target(TargetModel):
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
    provider_batching: Annotated[bool, AfterValidator(_refuse_batching)] = False
    cache_key: Annotated[ListOf[NonEmpty], BeforeValidator(_read_globs)] = ()


_SPELLINGS = {
    **dict.fromkeys(fields_of(_Target), ()),
    "judge_target": ("grader_target",),
    "max_concurrency": ("workers",),
    "retries": ("max_retries",),
}
_UNSUPPORTED = "of AgentV is not supported"
_REFUSED = {
    "fallback_targets": (_UNSUPPORTED, "name the one target that is tested"),
    "response": ("is known to `mock` alone", "remove it"),
    "workspace_template": ("is misplaced", "write `workspace: {template: …}` in the suite"),
    **dict.fromkeys(
        ("temperature", "max_output_tokens", "thinking_budget"),
        (_UNSUPPORTED, "write it in `config`, as the model's API names it"),
    ),
    **dict.fromkeys(
        ("model_reasoning_effort", "max_budget_usd", "max_turns", "bypass_permissions", "variant"),
        (_UNSUPPORTED, "write the agent's own option in `args`"),
    ),
    **dict.fromkeys(
        ("subprovider", "tools", "thinking"),
        (_UNSUPPORTED, "write it in the command of a target of provider `cli`"),
    ),
    "system_prompt": (_UNSUPPORTED + " here", "write a `system` message in the suite's `input`"),
    **dict.fromkeys(
        ("fixtures", "execution_traces", "eval_path"),
        (_UNSUPPORTED, "name the results of an earlier run in `path`"),
    ),
}
_OTHER_AGENT = (_UNSUPPORTED, "run the agent with a target of provider `cli`")
_DESKTOP = ("needs a desktop, which a runner has not", "use a `cli` target")
#: The providers of AgentV that are not supported, with problem and advice.
UNSUPPORTED_PROVIDERS: Mapping[str, tuple[str, str]] = {
    "agentv": (_UNSUPPORTED, "write the provider of the model, as `openai`"),
    "cc_mirror": (_UNSUPPORTED, "write `provider: claude-cli` with the program as `command`"),
    "claude_sdk": (_UNSUPPORTED, "write `provider: claude-cli`"),
    "copilot_log": _OTHER_AGENT,
    "copilot_sdk": (_UNSUPPORTED, "write `provider: copilot-cli`"),
    "openrouter": (
        _UNSUPPORTED,
        "write `provider: openai` with `base_url: https://openrouter.ai/api/v1`",
    ),
    "pi": _OTHER_AGENT,
    "pi_cli": _OTHER_AGENT,
    "pi_coding_agent": _OTHER_AGENT,
    "transcript": (_UNSUPPORTED, "write `provider: replay` with the results of an earlier run"),
    "vscode": _DESKTOP,
    "vscode_insiders": _DESKTOP,
}


class _Unresolved(base.ProviderOptions):
    """The target behind a `use_target` whose variable is not set: every call is an error."""

    provider = "use_target"
    is_model = True  # it may be one

    def connect(self, context: base.ProviderContext) -> base.Provider:  # noqa: ARG002  # of the interface
        """AttemptError, because the target is not known."""
        problem = "the variable of `use_target` was not set when the targets were read"
        raise AttemptError("configuration", problem, "set it in the environment of the step")


@dataclass(frozen=True)
class TargetEntry:
    """One target of a file. Its errors and warnings are reported where a test uses it; with errors
    it has no `target`. `alias` is the entry if it has `use_target`, `judge_location` is where it
    names its judge."""

    findings: Findings
    target: Target | None = None
    alias: Map | None = None
    judge_location: Location | None = None


@dataclass(frozen=True)
class TargetsFile:
    """The content of a targets file by name. `is_complete` is false when the list could not be
    read."""

    path: str
    entries: Mapping[str, TargetEntry] = field(default_factory=dict)
    is_complete: bool = True


def read_targets(file: Path, root: Path, providers: Providers, findings: Findings) -> TargetsFile:
    """Reads a targets file; errors that concern no single target go to `findings`."""
    path = file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
    entries = _read_entries(file, path, root, findings)
    if entries is None:
        return TargetsFile(path, is_complete=False)
    folder = Folder(root, file.parent.resolve())
    read: dict[str, TargetEntry] = {}
    for name, (entry, own) in entries.items():
        if "use_target" in entry:
            read[name] = TargetEntry(own, alias=_read_alias(entry, own))
            continue
        merged = _inherit(name, {other: one for other, (one, _) in entries.items()}, own)
        target = _read_target(merged, entry, providers, folder, own) if merged else None
        location = None
        if merged is not None:
            key = "judge_target" if "judge_target" in merged else "grader_target"
            location = merged.value_location(key)
        read[name] = TargetEntry(own, None if own.errors else target, judge_location=location)
    return TargetsFile(path, read)


def _read_alias(entry: Map, findings: Findings) -> Map | None:
    common = (name for field, others in _SPELLINGS.items() for name in (field, *others))
    refused = dict.fromkeys(common, ("has no effect beside `use_target`", "remove one of them"))
    shape = dialects.Shape("target with `use_target`", {"name": (), "use_target": ()}, refused)
    dialects.fold(entry, shape, findings)
    wanted = entry["use_target"]
    if isinstance(wanted, str) and wanted:
        return entry
    problem = f"`use_target` is {describe_value(wanted)}"
    findings.error(entry.value_location("use_target"), problem, "write the name of a target")
    return None


def _read_entries(
    file: Path, path: str, root: Path, findings: Findings
) -> Mapping[str, tuple[Map, Findings]] | None:
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


def _by_name(listed: Items, findings: Findings) -> Mapping[str, tuple[Map, Findings]]:
    """The entries with findings of their own."""
    entries: dict[str, tuple[Map, Findings]] = {}
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
            own = entries[name][1]
            own.error(value.value_location("name"), problem, "give each its own name")
        else:
            entries[name] = (value, Findings(findings.ignored))
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
        if unsupported := UNSUPPORTED_PROVIDERS.get(dialects.type_key(provider)):
            problem, advice = f"the provider `{provider}` {unsupported[0]}", unsupported[1]
        findings.error(merged.value_location("provider"), problem, advice)
        return None
    shape = shape_of_target(options)
    dialects.fold(own, shape, findings)
    data = dialects.fold(merged, shape, Findings())
    common = findings.read(_Target, data, "target")
    for key in merged:
        _check_references(merged, key, findings)
    if options is None:
        return None
    valid = findings.read(options, data, f"`{options.provider}` target", folder)
    if common is None or valid is None:
        return None
    for name, problem, advice in valid.warnings():
        findings.warn(data.value_location(name), problem, advice)
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
        price=Price(**common.price.model_dump()) if common.price else None,
        requests_per_minute=common.requests_per_minute,
        cache_key=common.cache_key,
    )


def shape_of_target(options: type[base.ProviderOptions] | None) -> dialects.Shape:
    """The fields of the targets of one provider; the common ones if it is unknown."""
    own = dialects.model_shape("", options).fields if options else {}
    refused = {name: reason for name, reason in _REFUSED.items() if name not in own}
    inside = {"price": dialects.model_shape("price", _Price)}
    return dialects.Shape("target", {**_SPELLINGS, **own}, refused, inside=inside)


def _check_references(entry: Map, key: str, findings: Findings) -> None:
    """Reports `${{ secrets.NAME }}`, and a key that is another form of a reference."""
    value, location = entry[key], entry.value_location(key)
    for name in variables.names_in(value):
        if "." in name:
            problem = f"`${{{{ {name} }}}}` is not a variable of the environment"
            bare = name.rpartition(".")[2]
            advice = f"write `${{{{ {bare} }}}}`, and set {bare} in the workflow's `env:`"
            findings.error(location, problem, advice)
    if key.endswith("key") and isinstance(value, str) and (found := _SHELL_NAME.fullmatch(value)):
        problem = f"`{key}` is the text {value!r}, which is not resolved"
        findings.warn(location, problem, f"write `${{{{ {found[1]} }}}}`")


@dataclass(frozen=True)
class TargetUse:
    """The targets that a suite sees.

    `file` is None without a complete targets file: nothing is checked then, and the tests that need
    a target end in that error. `farther` are the errors of files farther up, which are reported if
    a target is missing. `suite` is the location of its root, `default_location` that of the name of
    its target in the suite or the configuration. `used` collects the targets that answer and judge
    tests, `judges` those that judge, `declared` is the suite's own, even if no test uses it.
    `files` are the files that were read, `timeout_seconds` the limit in `.agentv/config.yaml`."""

    table: TargetTable
    file: TargetsFile | None
    suite: Location
    farther: Findings = field(default_factory=Findings)
    suite_target: str | None = None
    default_location: Location | None = None
    files: tuple[NamedFile, ...] = ()
    timeout_seconds: float | None = None
    used: dict[str, None] = field(default_factory=dict)
    judges: dict[str, None] = field(default_factory=dict)
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
        if name is None and "default" in self.file.entries:
            name = "default"
        if name is None:
            findings.add(self.farther)
            problem = f"no target is named, and {self.file.path} has none called `default`"
            findings.error(self.suite, problem, self._advice_for_default())
            return None
        if self.table.agent_override:
            return self._use(name, self.suite, "the input `target` names", findings)
        if not wanted or not location:
            location = self.default_location or self.suite
        return self._use(name, location, _MISSING, findings)

    def _advice_for_default(self) -> str:
        """What to write: the target that can be meant, if it is the only one."""
        judges = {target.judge_target for target in self.table.targets.values()}
        agents = sorted(self.table.targets.keys() - judges) or sorted(self.table.targets)
        line = f"`execution: {{target: {agents[0] if agents else '…'}}}`"
        if not agents:
            line += f" with {self._known()}"
        elif agents[1:]:
            line += f" (or {one_of(agents[1:])})"
        return f"write {line} in the suite, or call a target `default`"

    def judge(self, declared: Declared, agent: str | None, findings: Findings) -> None:
        """Adds an error when an evaluator that asks a judge has none."""
        evaluator = declared.evaluator
        if self.file is None or (agent is None and not evaluator.target):
            return
        name = self.table.judge(evaluator.target, agent)
        if name and name in self.table.targets:
            self.judges[name] = None
            if evaluator.options.judge_temperature() is not None:
                self._warn_of_temperature(self.table.targets[name], declared, findings)
        if evaluator.target:
            location = declared.target_location or evaluator.location
            self._use(evaluator.target, location, _MISSING, findings)
        elif name is None:
            problem = (
                f"`{evaluator.name}` has no judge: the target `{agent}` is not a model and names "
                "no `judge_target`"
            )
            here = ", or `target` here" if evaluator.options.asks_judge else ""
            advice = f"write `judge_target` in {self.file.path}{here}"
            findings.error(evaluator.location, problem, advice)
        elif name == self.table.judge_override:
            self._use(name, self.suite, "the input `judge-target` names", findings)
        else:
            entry = self.file.entries.get(agent or "")
            location = (entry and entry.judge_location) or evaluator.location
            self._use(name, location, "there is no judge target", findings)

    @staticmethod
    def _warn_of_temperature(judge: Target, declared: Declared, findings: Findings) -> None:
        if not judge.is_model:
            problem = f"`temperature` has no effect: the judge `{judge.name}` is not a model"
            findings.warn(declared.evaluator.location, problem, "remove it, or name a model")

    def _use(self, name: str, location: Location, problem: str, findings: Findings) -> str | None:
        known = self._existing(name, location, problem, findings)
        if known and known in self.table.targets:
            self.used[known] = None
        return known

    def _existing(
        self, name: str, location: Location, problem: str, findings: Findings
    ) -> str | None:
        if self.file is None:
            return name
        if entry := self.file.entries.get(name):
            findings.add(entry.findings)
            return name if name in self.table.targets else None
        findings.add(self.farther)
        where = f", which is not in {self.file.path}" if problem.startswith("the input") else ""
        advice = did_you_mean(name, self.file.entries, f"write {self._known()}")
        findings.error(location, f"{problem} `{name}`{where}", advice)
        return None

    def _known(self) -> str:
        known = sorted(self.file.entries) if self.file else ()
        return one_of(known) if known else "the name of a target, once there is one"

    def target_files(self) -> Iterable[NamedFile]:
        """The files that declare the used targets and the suite's own, and those in their
        commands: a program that judges is no part of the agent."""
        for name in (*self.judges, *self.declared, *self.used):
            target = self.table.targets[name]
            yield NamedFile(target.location.path, "targets file")
            role = "judge's command" if name in self.judges else "target's command"
            for path in target.files:
                yield NamedFile(path, role)


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
    folder: Folder,
    catalog: Catalog,
    wanted: tuple[str, Location] | None,
    suite: Map,
    findings: Findings,
) -> TargetUse:
    """Reads the targets files and the configuration for the suite whose root is `suite` and names
    the target `wanted`. A target that the nearest file lacks is looked up in those above it."""
    files = []
    root = folder.root
    config = Config("")
    if path := nearest_file(folder.path, root, CONFIG):
        config = _cached(catalog, path, findings, lambda own: read_config(path, root, own))
        if config.target or config.timeout_seconds:
            files.append(NamedFile(config.path, "configuration"))
    listed, farther = None, Findings()
    for file in [catalog.targets_file] if catalog.targets_file else _files_above(folder.path, root):
        own = Findings(catalog.ignored_fields)
        read = _cached(catalog, file, own, partial(read_targets, file, root, catalog.providers))
        if listed is None:
            listed = read
            findings.add(own)
            files.append(NamedFile(listed.path, "targets file"))
        else:
            listed = replace(listed, entries={**read.entries, **listed.entries})
            farther.add(own)
    if listed is not None:
        listed = replace(listed, entries=_seen_from(listed.entries, folder, catalog))
    table = TargetTable(
        path=listed.path if listed else None,
        targets={
            name: entry.target
            for name, entry in (listed.entries if listed else {}).items()
            if entry.target is not None
        },
        agent_override=catalog.target,
        judge_override=catalog.judge_target,
        default_target=config.target,
    )
    return TargetUse(
        table,
        listed if listed and listed.is_complete else None,
        suite.location,
        farther,
        suite_target=wanted[0] if wanted else None,
        default_location=wanted[1] if wanted else config.target_location,
        files=tuple(files),
        timeout_seconds=config.timeout_seconds,
    )


def _files_above(folder: Path, root: Path) -> Iterator[Path]:
    """The targets files of a folder and of those above it up to the root, the nearest first."""
    for above in (folder, *folder.parents):
        if is_present(file := above / FOLDER / NAME):
            yield file
        if above == root:
            return


def _seen_from(
    entries: Mapping[str, TargetEntry], folder: Folder, catalog: Catalog
) -> Mapping[str, TargetEntry]:
    """The entries as the suites in a folder see them: with the targets behind `use_target`, and the
    files in commands."""
    seen: dict[str, TargetEntry] = {}
    for name, written in entries.items():
        entry = _behind(name, entries, folder, catalog) if written.alias else written
        if entry.target is not None:
            own = Findings()
            own.add(written.findings)
            own.add(entry.findings)
            target = replace(entry.target, files=_command_files(entry.target, folder, own))
            entry = replace(entry, findings=own, target=None if own.errors else target)
        seen[name] = entry
    return seen


def _behind(
    name: str, entries: Mapping[str, TargetEntry], folder: Folder, catalog: Catalog
) -> TargetEntry:
    """The entry to which the `use_target` of the target `name` leads."""
    chain = [name]
    while (alias := (entry := entries[chain[-1]]).alias) is not None:
        wanted, location = alias["use_target"], alias.value_location("use_target")
        problem, advice = "", ""
        if names := variables.names_in(wanted):
            try:
                values = variables.read_variables(catalog.environ, folder.root, folder.path)
            except AttemptError as error:
                values, problem, advice = {}, str(error), error.hint
            if not problem and any(one not in values for one in names):
                return replace(entry, target=_unresolved(alias, names))
            wanted = "" if problem else variables.resolve(wanted, values).strip()
        if not problem and wanted not in entries:
            # The value of a variable may be a secret.
            problem = f"there is no target `{alias['use_target']}`"
            problem += ", with the value that the variable has" if names else ""
            advice = _did_you_mean("" if names else wanted, entries)
        elif not problem and wanted in chain:
            problem = f"the target `{name}` leads to itself, by {' → '.join((*chain, wanted))}"
            advice = "break the circle"
        if problem:
            findings = Findings()
            findings.add(entry.findings)
            findings.error(location, problem, advice)
            return TargetEntry(findings)
        chain.append(wanted)
    return entry


def _unresolved(alias: Map, names: Sequence[str]) -> Target:
    return Target(
        name=alias["name"],
        provider=_Unresolved.provider,
        options=_Unresolved(),
        definition=plain(alias),
        location=alias.location,
        is_model=True,
        variables=tuple(names),
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
    """Reads a file once for all suites that share it; `findings` gets its errors."""
    status = file.stat() if file.exists() else None
    key = (file, status and (status.st_mtime_ns, status.st_size))
    if key not in catalog.cache:
        own = Findings(catalog.ignored_fields)
        catalog.cache[key] = (read(own), own)
    value, own = catalog.cache[key]
    findings.add(own)
    result: Read = value
    return result
