"""Reads `.agentv/targets.yaml`: every target with what it inherits, `${{ }}` unresolved."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import join_choices
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.target import Target
from agentevals_action.suites.documents.diagnostics import DiagnosticCollector, Unreadable
from agentevals_action.suites.documents.yaml_reader import read_settings_file
from agentevals_action.suites.find import FOLDER
from agentevals_action.suites.reading import FileReader, words
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import is_present
from agentevals_action.system.redaction import looks_like_key, looks_secret
from agentevals_action.targets import variables
from agentevals_action.targets.registry import PROVIDERS
from agentevals_action.validation.field_errors import describe_value, did_you_mean, nearest
from agentevals_action.validation.file_model import list_spellings

NAME = "targets.yaml"
_MOST_PARENTS = 20
_SHELL_NAME = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")
#: The providers of AgentV that are not supported.
UNSUPPORTED_PROVIDERS = words(
    "agentv cc_mirror claude_sdk copilot_log copilot_sdk openrouter pi pi_cli "
    "pi_coding_agent transcript vscode vscode_insiders"
)
_PARENTS = ("extends", "use_target")

#: The entries of a file as written, by name, each with the reader of its file.
_Written = Mapping[str, tuple[dict[str, Any], FileReader]]


@dataclass(frozen=True)
class TargetEntry:
    """One target. Its errors and warnings are reported where a test uses it; with errors it has no
    `target`."""

    diagnostics: DiagnosticCollector
    target: Target | None = None


@dataclass(frozen=True)
class TargetsFile:
    """`entries` are the targets of a file, and the targets of files farther up that it does not
    replace, by name. `paths` are the paths of all these files, the nearest first.

    `is_complete` is false when a list could not be read; `diagnostics` concern no single target."""

    paths: tuple[str, ...] = ()
    entries: Mapping[str, TargetEntry] = field(default_factory=dict)
    is_complete: bool = False
    diagnostics: DiagnosticCollector = field(default_factory=DiagnosticCollector)
    written: _Written = field(default_factory=dict)

    @property
    def path(self) -> str | None:
        """The file itself."""
        return next(iter(self.paths), None)


def read_targets_above(
    folder: Folder, environ: Mapping[str, str], known: dict[Path, TargetsFile]
) -> TargetsFile:
    """The targets for the suites in a folder: of the files in it and above it up to the root, the
    nearest with precedence. `known` has the files that were read before, and gets the new ones."""
    targets = TargetsFile()
    for above in reversed((folder.path, *folder.path.parents)):
        file = above / FOLDER / NAME
        if above.is_relative_to(folder.root) and is_present(file):
            if file not in known:
                known[file] = read_targets(file, folder.root, environ, targets)
            targets = known[file]
    return targets


def read_targets(
    file: Path, root: Path, environ: Mapping[str, str], above: TargetsFile | None = None
) -> TargetsFile:
    """Reads a targets file. `environ` are the variables of the names in `use_target`, `above` the
    targets of files farther up."""
    above = above or TargetsFile()
    path = file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
    diagnostics = DiagnosticCollector()
    entries = _read_entries(file, path, root, diagnostics)
    has_errors = bool(diagnostics.errors)  # a target that a suite names may be in them
    diagnostics.add(above.diagnostics)
    written = {**above.written, **entries}
    return TargetsFile(
        (path, *above.paths),
        {name: _read_entry(name, written, environ) for name in written},
        not has_errors and (above.is_complete or not above.paths),
        diagnostics,
        written,
    )


def _read_entries(file: Path, path: str, root: Path, diagnostics: DiagnosticCollector) -> _Written:
    """The entries of a file by name."""
    if not is_present(file):
        problem = "there is no such targets file"
        diagnostics.error(Location(path), problem, "correct the input `targets`")
        return {}
    try:
        document = read_settings_file(file, root, path)
    except Unreadable as error:
        diagnostics.unreadable(error)
        return {}
    data, positions = document.data, document.positions
    listed = data.get("targets") if isinstance(data, dict) else data
    if not isinstance(listed, list):
        in_object = isinstance(data, dict)
        location = positions.value(data, "targets") if in_object else Location(path)
        problem = f"the targets are {describe_value(listed)}"
        if in_object and "targets" not in data:
            problem = "`targets` is missing"
        advice = "write a list of targets, each with `name` and `provider`"
        diagnostics.error(location, problem, advice)
        return {}
    reader = FileReader(root, file.parent.resolve(), positions, diagnostics)
    entries: dict[str, tuple[dict[str, Any], FileReader]] = {}
    for index, value in enumerate(listed):
        name = value.get("name") if isinstance(value, dict) else None
        if not isinstance(name, str) or not name:
            problem = f"a target is {describe_value(value)}"
            if isinstance(value, dict):
                problem = "this target has no `name`"
            advice = "write an object with `name` and `provider`"
            reader.error(positions.value(listed, index), problem, advice)
        elif name in entries:
            problem = f"there is a second target `{name}`"
            reader.error(positions.value(value, "name"), problem, "give each its own name")
        else:
            entries[name] = (value, reader)
    return entries


def _read_entry(name: str, written: _Written, environ: Mapping[str, str]) -> TargetEntry:
    """The target of this name with what it inherits, or its errors."""
    own_fields, of_file = written[name]
    reader = replace(of_file, diagnostics=DiagnosticCollector())
    data: dict[str, Any] = {}
    positions: dict[str, Any] = {}
    for ancestor in reversed(list(_ancestry(name, written, environ, reader))):
        entry, other = written[ancestor]
        inherits = [key for key in _PARENTS if isinstance(entry.get(key), str)]
        data |= {key: value for key, value in entry.items() if key not in inherits}
        # An error in what another file declares is reported at the target that extends it.
        positions |= other.positions.keys(entry) if other is of_file else {}
    start = reader.positions.of(own_fields)
    reader.positions.add(data, (start.line, start.column), positions)
    target = None if reader.diagnostics.errors else _read_target(data, own_fields, reader)
    return TargetEntry(reader.diagnostics, None if reader.diagnostics.errors else target)


def _ancestry(
    name: str, written: _Written, environ: Mapping[str, str], reader: FileReader
) -> Iterator[str]:
    """The names of a target and of those that it extends, in turn; an error where one of them does
    not exist, or the chain is a circle. `use_target` is the same as `extends`, and both may name a
    variable."""
    names = [name]
    while True:
        yield names[-1]
        entry, of_file = written[names[-1]]
        key = next((key for key in _PARENTS if isinstance(entry.get(key), str)), None)
        if key is None:
            return
        parent = text = entry[key]
        problem, advice = "", ""
        if has_variable := bool(variables.names_in(text)):
            folder = of_file.path.parent if of_file.path.name == FOLDER else of_file.path
            try:
                values = variables.read_variables(environ, of_file.root, folder)
                parent = str(variables.resolve(text, values)).strip()
            except AttemptError as error:
                problem, advice = str(error), error.hint
        if not problem and parent not in written:
            # The value of a variable may be a secret, and is not shown.
            problem = f"there is no target `{text}` to extend"
            advice = f"write one of {join_choices(sorted(written))}"
            advice = advice if has_variable else did_you_mean(parent, written, advice)
        elif not problem and (parent in names or len(names) > _MOST_PARENTS):
            problem = f"the target `{name}` extends itself, or more than {_MOST_PARENTS} others"
            advice = "make the chain shorter"
        if problem:
            location = of_file.positions.value(entry, key)
            reader.error(location, problem, advice)
            return
        names.append(parent)


def _read_target(data: dict[str, Any], entry: dict[str, Any], reader: FileReader) -> Target | None:
    """The target of an entry; `data` also has the fields that the entry inherits."""
    provider = data.get("provider")
    model = PROVIDERS.get(provider or "")
    if model is None:  # which other fields it has is not known
        _report_provider(data, reader)
        return None
    names = list_spellings(model)
    reader.check_fields(model, entry)
    overridden = {names[key] for key in entry if key in names}
    read = {key for key in data if key in names and (key in entry or names[key] not in overridden)}
    target = reader.validate(model, reader.only(data, read), f"`{provider}`")
    for key in data:
        _check_references(data, key, reader)
    if target is None:
        return None
    for name, problem, advice in target.warnings():
        key = next((key for key in data if names.get(key) == name), name)
        reader.warn(reader.positions.value(data, key), problem, advice)
    needed = (*variables.names_in(data), *target.other_variables())
    return target.model_copy(
        update={
            "definition": data,
            "variables": tuple(dict.fromkeys(needed)),
        }
    )


def _report_provider(data: dict[str, Any], reader: FileReader) -> None:
    """Reports that the provider of a target is missing, or none that is known."""
    provider, location = data.get("provider"), reader.positions.value(data, "provider")
    advice = f"write one of {join_choices(sorted(name.replace('_', '-') for name in PROVIDERS))}"
    parent = next((name for name in _PARENTS if name in data), None)
    misspelled = next((name for name in data if nearest(name, ("provider",))), None)
    if key := PROVIDERS.key(provider):
        if key in UNSUPPORTED_PROVIDERS:
            reader.refuse_feature(location, f"the provider `{provider}`")
            return
        problem = f"the provider `{provider}` is unknown"
        advice = did_you_mean(key, PROVIDERS.all_spellings, advice)
    elif parent:
        location = reader.positions.value(data, parent)
        problem = f"`{parent}` is {describe_value(data[parent])}"
        advice = "write the name of a target"
    elif "provider" in data:
        problem = f"`provider` is {describe_value(provider)}"
    elif misspelled:
        location = reader.positions.key(data, misspelled)
        problem = f"the field `{misspelled}` of this target is unknown"
        advice = "did you mean `provider`?"
    else:
        problem = "`provider` is missing"
    reader.error(location, problem, advice)


def _check_references(data: dict[str, Any], key: str, reader: FileReader) -> None:
    """Reports `${{ secrets.NAME }}`, a key that is another form of a reference, and a key in clear
    text."""
    value, location = data[key], reader.positions.value(data, key)
    for name in variables.names_in(value):
        if "." in name:
            problem = f"`${{{{ {name} }}}}` is not a variable of the environment"
            bare = name.rpartition(".")[2]
            advice = f"write `${{{{ {bare} }}}}`, and set {bare} in the workflow's `env:`"
            reader.error(location, problem, advice)
    if key.endswith("key") and isinstance(value, str) and (match := _SHELL_NAME.fullmatch(value)):
        problem = f"`{key}` is the text {value!r}, which is not resolved"
        reader.warn(location, problem, f"write `${{{{ {match[1]} }}}}`")
    for name, text in (value if isinstance(value, dict) else {key: value}).items():
        # A header is `Bearer …`.
        if isinstance(text, str) and looks_secret(name) and looks_like_key(text.rpartition(" ")[2]):
            problem = (
                f"`{name}` is a key in clear text, which all readers of the repository can use"
            )
            advice = "revoke it, and write `${{ NAME }}` with the name of a variable"
            location = reader.positions.value(value, name) if value is not text else location
            reader.warn(location, problem, advice)
