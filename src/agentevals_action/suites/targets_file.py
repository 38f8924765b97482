"""Reads `.agentv/targets.yaml`, with `extends` applied and `${{ }}` unresolved."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from agentevals_action.formatting import one_of
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.target import Price, Target
from agentevals_action.model.validation.file_model import ListOf, NonEmpty, TargetModel, fields_of
from agentevals_action.suites import dialects
from agentevals_action.suites.files.diagnostics import Findings, did_you_mean
from agentevals_action.suites.files.positions import Items, Map, plain
from agentevals_action.suites.files.validation_errors import describe_value
from agentevals_action.suites.files.yaml_reader import read_settings_file
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import is_present
from agentevals_action.targets import base, variables

NAME = "targets.yaml"
_MOST_PARENTS = 20

_SHELL_NAME = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")

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
#: The providers of AgentV that are not supported.
UNSUPPORTED_PROVIDERS = frozenset(
    (
        *("agentv", "cc_mirror", "claude_sdk", "copilot_log", "copilot_sdk", "openrouter"),
        *("pi", "pi_cli", "pi_coding_agent", "transcript"),
    )
)
_DESKTOP_PROVIDERS = ("vscode", "vscode_insiders")


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
    for key in entry:
        if key not in ("name", "use_target") and not dialects.is_exempt(key):
            problem = f"`{key}` has no effect beside `use_target`"
            findings.error(entry.key_location(key), problem, "remove one of them")
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
            entries[name] = (value, Findings())
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
            advice = advise_target(parent, entries)
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


def advise_target(name: str, known: Mapping[str, Any] | tuple[str, ...]) -> str:
    """The advice for a name that is not one of the known ones."""
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
        if dialects.type_key(provider) in UNSUPPORTED_PROVIDERS:
            problem = f"the provider `{provider}` of AgentV is not supported"
            advice = f"see {dialects.DOCUMENTATION}"
        if dialects.type_key(provider) in _DESKTOP_PROVIDERS:
            problem = f"the provider `{provider}` needs a desktop, which a runner has not"
            advice = "use a `cli` target"
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
    unsupported = dialects.UNSUPPORTED["target"]
    inside = {"price": dialects.model_shape("price", _Price)}
    return dialects.Shape("target", {**_SPELLINGS, **own}, unsupported, inside=inside)


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
