"""Reads `.agentv/targets.yaml`, with `extends` applied and `${{ }}` unresolved."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentevals_action.formatting import one_of
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.target import Target
from agentevals_action.model.validation.field_errors import describe_value, did_you_mean
from agentevals_action.model.validation.file_model import spellings_of
from agentevals_action.suites.diagnostics import DiagnosticCollector
from agentevals_action.suites.reading import DOCUMENTATION, FileReader, is_exempt, type_key, words
from agentevals_action.suites.yaml_reader import read_settings_file
from agentevals_action.system.files.regular_files import is_present
from agentevals_action.targets import base, variables

NAME = "targets.yaml"
_MOST_PARENTS = 20
_SHELL_NAME = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")
#: The providers of AgentV that are not supported.
UNSUPPORTED_PROVIDERS = words(
    "agentv cc_mirror claude_sdk copilot_log copilot_sdk openrouter pi pi_cli "
    "pi_coding_agent transcript"
)
_DESKTOP_PROVIDERS = ("vscode", "vscode_insiders")

Providers = Mapping[str, type[base.ProviderOptions]]
_Entries = Mapping[str, tuple[dict[str, Any], FileReader]]


@dataclass(frozen=True)
class Alias:
    """A target that is another one: `use_target`, as it is written."""

    definition: Mapping[str, Any]
    location: Location
    #: Where the other's name is.
    name_location: Location


@dataclass(frozen=True)
class TargetEntry:
    """One target of a file. Its errors and warnings are reported where a test uses it; with errors
    it has no `target`. `judge_location` is where it names its judge."""

    diagnostics: DiagnosticCollector
    target: Target | None = None
    alias: Alias | None = None
    judge_location: Location | None = None


@dataclass(frozen=True)
class TargetsFile:
    """The content of a targets file by name. `is_complete` is false when the list could not be
    read; `diagnostics` concern no single target."""

    path: str
    entries: Mapping[str, TargetEntry] = field(default_factory=dict)
    is_complete: bool = True
    diagnostics: DiagnosticCollector = field(default_factory=DiagnosticCollector)


def read_targets(file: Path, root: Path, providers: Providers) -> TargetsFile:
    """Reads a targets file."""
    path = file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
    diagnostics = DiagnosticCollector()
    entries = _read_entries(file, path, root, diagnostics)
    if entries is None:
        return TargetsFile(path, is_complete=False, diagnostics=diagnostics)
    read: dict[str, TargetEntry] = {}
    for name, (entry, reader) in entries.items():
        if "use_target" in entry:
            alias = _read_alias(entry, reader)
            read[name] = TargetEntry(reader.diagnostics, alias=alias)
            continue
        merged = _inherit(name, entries)
        if merged is None:
            read[name] = TargetEntry(reader.diagnostics)
            continue
        target = _read_target(merged, entry, providers, reader)
        key = "judge_target" if "judge_target" in merged else "grader_target"
        read[name] = TargetEntry(
            reader.diagnostics,
            None if reader.diagnostics.errors else target,
            judge_location=reader.positions.value(merged, key),
        )
    return TargetsFile(path, read, diagnostics=diagnostics)


def _read_alias(entry: dict[str, Any], reader: FileReader) -> Alias | None:
    for key in entry:
        if key not in ("name", "use_target") and not is_exempt(key):
            problem = f"`{key}` has no effect beside `use_target`"
            reader.error(reader.positions.key(entry, key), problem, "remove one of them")
    wanted, location = entry["use_target"], reader.positions.value(entry, "use_target")
    if isinstance(wanted, str) and wanted:
        return Alias(entry, reader.positions.of(entry), location)
    problem = f"`use_target` is {describe_value(wanted)}"
    reader.error(location, problem, "write the name of a target")
    return None


def _read_entries(
    file: Path, path: str, root: Path, diagnostics: DiagnosticCollector
) -> _Entries | None:
    """The entries by name, each with a reader of its own diagnostics."""
    if not is_present(file):
        problem = "there is no such targets file"
        diagnostics.error(Location(path), problem, "correct the input `targets`")
        return None
    document = read_settings_file(file, root, path, diagnostics)
    if document is None:
        return None
    data, positions = document.data, document.positions
    listed = data.get("targets") if isinstance(data, dict) else data
    if not isinstance(listed, list):
        in_object = isinstance(data, dict)
        location = positions.value(data, "targets") if in_object else Location(path)
        advice = "write a list of targets, or an object with `targets`"
        diagnostics.error(location, f"the targets are {describe_value(listed)}", advice)
        return None
    reader = FileReader(root, file.parent.resolve(), positions, diagnostics)
    entries: dict[str, tuple[dict[str, Any], FileReader]] = {}
    for index, value in enumerate(listed):
        if not isinstance(value, dict):
            advice = "write an object with `name` and `provider`"
            problem = f"a target is {describe_value(value)}"
            reader.error(positions.value(listed, index), problem, advice)
            continue
        name, location = value.get("name"), positions.value(value, "name")
        if not isinstance(name, str) or not name:
            problem = "this target has no `name`"
            if "name" in value:
                problem = f"`name` is {describe_value(name)}"
            reader.error(location, problem, "write the name by which suites refer to it")
        elif name in entries:
            problem = f"there is a second target `{name}`"
            entries[name][1].error(location, problem, "give each its own name")
        else:
            entries[name] = (value, reader.of(document, reader.path, DiagnosticCollector()))
    return entries


def _inherit(name: str, entries: _Entries) -> dict[str, Any] | None:
    """The entry with the fields of the targets that it extends; None, with an error, when one of
    them does not exist or the chain is a circle."""
    own, reader = entries[name]
    chain, merged = [name], dict(own)
    positions = reader.positions.keys(own)
    entry = own
    while isinstance(parent := entry.get("extends"), str):
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
            reader.error(reader.positions.value(entry, "extends"), problem, advice)
            return None
        chain.append(parent)
        entry = entries[parent][0]
        merged = {**{key: entry[key] for key in entry if key != "extends"}, **merged}
        positions = {**reader.positions.keys(entry), **positions}
    merged = {**{key: merged[key] for key in own}, **merged}
    start = reader.positions.of(own)
    reader.positions.add(merged, (start.line, start.column), positions)
    return merged


def advise_target(name: str, known: Iterable[str]) -> str:
    """The advice for a name that is not one of the known ones."""
    return did_you_mean(name, known, f"write one of {one_of(sorted(known))}")


def _read_target(
    merged: dict[str, Any], own: dict[str, Any], providers: Providers, reader: FileReader
) -> Target | None:
    provider = merged.get("provider")
    options = providers.get(type_key(provider)) if isinstance(provider, str) else None
    if isinstance(provider, str) and provider and options is None:
        _report_provider(provider, providers, reader.positions.value(merged, "provider"), reader)
        return None
    own_names = spellings_of(options) if options else {}
    names = {**spellings_of(Target), **own_names}
    reader.known_fields(own, names, "target")
    overridden = {names[key] for key in own if key in names}
    data = reader.without(
        merged,
        *(
            key
            for key in merged
            if key not in names or (key not in own and names[key] in overridden)
        ),
    )
    common = reader.validate(
        Target, reader.without(data, *(key for key in data if key not in spellings_of(Target)))
    )
    for key in merged:
        _check_references(merged, key, reader)
    if options is None:
        return None
    valid = reader.validate(
        options, reader.without(data, *(key for key in data if key not in own_names))
    )
    if common is None or valid is None:
        return None
    for name, problem, advice in valid.warnings():
        key = next((key for key in data if names[key] == name), name)
        reader.warn(reader.positions.value(data, key), problem, advice)
    return common.model_copy(
        update={
            "provider": options.provider,
            "options": valid,
            "definition": merged,
            "location": reader.positions.of(merged),
            "is_model": options.is_model,
            "variables": tuple(dict.fromkeys((*variables.names_in(merged), *valid.variables()))),
        }
    )


def _report_provider(
    provider: str, providers: Providers, location: Location, reader: FileReader
) -> None:
    known = one_of(sorted({options.provider for options in providers.values()}))
    problem = f"the provider `{provider}` is unknown"
    advice = did_you_mean(type_key(provider), providers, f"write one of {known}")
    if type_key(provider) in UNSUPPORTED_PROVIDERS:
        problem = f"the provider `{provider}` of AgentV is not supported"
        advice = f"see {DOCUMENTATION}"
    if type_key(provider) in _DESKTOP_PROVIDERS:
        problem = f"the provider `{provider}` needs a desktop, which a runner has not"
        advice = "use a `cli` target"
    reader.error(location, problem, advice)


def _check_references(entry: dict[str, Any], key: str, reader: FileReader) -> None:
    """Reports `${{ secrets.NAME }}`, and a key that is another form of a reference."""
    value, location = entry[key], reader.positions.value(entry, key)
    for name in variables.names_in(value):
        if "." in name:
            problem = f"`${{{{ {name} }}}}` is not a variable of the environment"
            bare = name.rpartition(".")[2]
            advice = f"write `${{{{ {bare} }}}}`, and set {bare} in the workflow's `env:`"
            reader.error(location, problem, advice)
    if key.endswith("key") and isinstance(value, str) and (found := _SHELL_NAME.fullmatch(value)):
        problem = f"`{key}` is the text {value!r}, which is not resolved"
        reader.warn(location, problem, f"write `${{{{ {found[1]} }}}}`")
