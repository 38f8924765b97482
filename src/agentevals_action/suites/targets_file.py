"""Reads `.agentv/targets.yaml`: the configured agents and models, with `extends` applied and
`${{ }}` unresolved."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from agentevals_action.formatting import one_of
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.file_model import FileModel, ListOf, NonEmpty, fields_of
from agentevals_action.model.target import Price, Target
from agentevals_action.suites import dialects
from agentevals_action.suites.files.diagnostics import Findings, did_you_mean
from agentevals_action.suites.files.positions import Items, Map, plain
from agentevals_action.suites.files.validation_errors import describe_value
from agentevals_action.suites.files.yaml_reader import read_settings_file
from agentevals_action.system.paths import Folder
from agentevals_action.targets import base, variables

NAME = "targets.yaml"
_MOST_PARENTS = 20

Providers = Mapping[str, type[base.ProviderOptions]]


def _read_globs(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(one, str) and one for one in value):
        return value
    advice = 'write the files that the agent consists of, as `["agent/**", "*.md"]`'
    raise ValueError(f"{describe_value(value)} is not a list of globs; {advice}")


class _Price(FileModel):
    """The price of a model."""

    input: Annotated[float, Field(ge=0)]
    """US dollars for a million tokens in."""
    output: Annotated[float, Field(ge=0)]
    """US dollars for a million tokens out."""


class _Target(FileModel):
    """The fields that all targets have in common; the others belong to the provider."""

    name: NonEmpty
    """Name by which suites refer to it."""
    provider: NonEmpty
    """Its type: mock, cli, openai."""
    extends: NonEmpty | None = None
    """Name of the target whose fields it inherits."""
    judge_target: NonEmpty | None = None
    """Name of the target that judges its answers."""
    max_concurrency: Annotated[int, Field(ge=1)] | None = None
    """Calls at once."""
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    """Repetitions after the first call, 0-10."""
    timeout_seconds: Annotated[float, Field(gt=0)] | None = None
    """Time limit of a call in seconds."""
    price: _Price | None = None
    """The price of its tokens."""
    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    """Calls that begin within a minute."""
    cache_key: Annotated[ListOf[NonEmpty], BeforeValidator(_read_globs)] = ()
    """Globs of the files, relative to the repository, that the agent consists of: its replies can
    then be cached."""


_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(fields_of(_Target), ()),
    "judge_target": ("grader_target",),
}
_REFUSED: Mapping[str, tuple[str, str]] = {
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

    def seen_from(self, folder: Folder, findings: Findings) -> Mapping[str, Target]:
        """The targets with the files that their commands name, from a suite's folder."""
        return {
            name: replace(target, files=_files(target, folder, findings))
            for name, target in self.targets.items()
        }


def _files(target: Target, folder: Folder, findings: Findings) -> tuple[str, ...]:
    if not isinstance(target.options, base.ProviderOptions):
        return ()
    try:
        return tuple(target.options.files(folder))
    except (OSError, ValueError) as error:
        problem = f"a file of the target `{target.name}` cannot be used: {error}"
        findings.error(target.location, problem, "name a file of the repository")
        return ()


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
        if error := _unusable(merged):
            unusable[name] = error
        elif target := _read_target(merged, entry, providers, folder, findings):
            targets[name] = target
    read = TargetsFile(path, targets, unusable, frozenset(entries) - {*targets, *unusable})
    for target in targets.values():
        _check_judge(target, entries, read, findings)
    return read


def _read_entries(
    file: Path, path: str, root: Path, findings: Findings
) -> Mapping[str, Map] | None:
    if not file.is_file():
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


def _unusable(entry: Map) -> Diagnostic | None:
    provider = entry.get("provider")
    if isinstance(provider, str) and dialects.type_key(provider) == "vscode":
        problem = "the provider `vscode` needs a desktop, which a runner has not"
        return Diagnostic(entry.value_location("provider"), problem, "use a `cli` target")
    return None


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
    fields: Mapping[str, tuple[str, ...]] = {}
    if options:
        fields = {name: tuple(options.spellings.get(name, ())) for name in fields_of(options)}
    refused = {name: reason for name, reason in _REFUSED.items() if name not in fields}
    shape = dialects.Shape("target", {**_SPELLINGS, **fields}, refused)
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


def _check_judge(
    target: Target, entries: Mapping[str, Map], read: TargetsFile, findings: Findings
) -> None:
    judge, entry = target.judge_target, entries[target.name]
    key = "judge_target" if "judge_target" in entry else "grader_target"
    if judge is not None and judge not in entries and key in entry:
        problem = f"there is no target `{judge}` to judge"
        findings.error(entry.value_location(key), problem, _did_you_mean(judge, read.known))
