"""`.agentv/targets.yaml`: the configured agents and models that a suite sees, `extends` applied,
`${{ }}` unresolved."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from agentevals_action.entries.entry import Before, Entry, NonEmpty
from agentevals_action.entries.reading import fields_of
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.target import Price, Target
from agentevals_action.suites import dialects
from agentevals_action.suites.files.diagnostics import Findings, kind, nearest, one_of
from agentevals_action.suites.files.positions import Items, Map, plain
from agentevals_action.suites.files.settings_file import read_settings_file
from agentevals_action.suites.schema_models import ListOf
from agentevals_action.system.paths import Folder
from agentevals_action.targets import base, variables

NAME = "targets.yaml"


class PriceEntry(Entry):
    """What a model costs."""

    input: Annotated[float, Meta(ge=0, description="US dollars for a million tokens in.")]
    output: Annotated[float, Meta(ge=0, description="US dollars for a million tokens out.")]


def _globs(value: Any) -> Any:
    if not isinstance(value, list | tuple) or not all(
        isinstance(one, str) and one for one in value
    ):
        raise ValueError(
            f'{kind(value)} is no list of globs; write the files that the agent is made of, as `["agent/**", "*.md"]`'
        )
    return value


class TargetEntry(Entry):
    """What all targets have in common; the rest belongs to the provider."""

    name: Annotated[NonEmpty, Meta(description="Name by which suites ask for it.")]
    provider: Annotated[NonEmpty, Meta(description="What it is: mock, cli, openai.")]
    extends: Annotated[
        NonEmpty | None, Meta(description="Name of the target whose fields it inherits.")
    ] = None
    judge_target: Annotated[
        NonEmpty | None, Meta(description="Name of the target that judges its answers.")
    ] = None
    max_concurrency: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Calls at once.")
    ] = None
    retries: Annotated[
        int, Meta(ge=0, le=10, description="Repetitions after the first call, 0-10.")
    ] = 2
    timeout_seconds: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="Time limit of a call in seconds.")
    ] = None
    price: Annotated[PriceEntry | None, Meta(description="What its tokens cost.")] = None
    requests_per_minute: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="Calls that begin within a minute.")
    ] = None
    cache_key: Annotated[
        Annotated[ListOf[NonEmpty], Before(_globs)],
        Meta(
            description="Globs of the files, relative to the repository, that the agent behind it is made of: lets its replies be cached."
        ),
    ] = ()


_COMMON: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(fields_of(TargetEntry), ()),
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
    """A targets file as read. `unusable` are targets of providers that cannot run here, each with
    the fault to tell when it is used, `faulty` those whose faults are told already; `whole` says
    whether its list could be read at all."""

    path: str
    targets: Mapping[str, Target] = field(default_factory=dict)
    unusable: Mapping[str, Diagnostic] = field(default_factory=dict)
    invalid: frozenset[str] = frozenset()
    whole: bool = True

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
        findings.error(
            target.location,
            f"a file of the target `{target.name}` cannot be used: {error}",
            "name a file of the repository",
        )
        return ()


def read_targets(
    file: Path, root: Path, providers: Mapping[str, type[base.ProviderOptions]], findings: Findings
) -> TargetsFile:
    """Reads a targets file; all its faults go to `findings`."""
    path = file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
    entries = _read_entries(file, path, root, findings)
    if entries is None:
        return TargetsFile(path, whole=False)
    targets: dict[str, Target] = {}
    unusable: dict[str, Diagnostic] = {}
    for name, entry in entries.items():
        whole = _inherited(name, entries, findings)
        if whole is None:
            continue
        provider = whole.get("provider")
        if isinstance(provider, str) and (diagnostic := _unusable(provider, whole)):
            unusable[name] = diagnostic
        elif target := _read_target(
            whole, entry, providers, Folder(root, file.parent.resolve()), findings
        ):
            targets[name] = target
    read = TargetsFile(path, targets, unusable, frozenset(entries) - {*targets, *unusable})
    for target in targets.values():
        _check_judge(target, entries, read, findings)
    return read


def _read_entries(
    file: Path, path: str, root: Path, findings: Findings
) -> Mapping[str, Map] | None:
    if not file.is_file():
        findings.error(Location(path), "there is no such targets file", "mend the input `targets`")
        return None
    data, read = read_settings_file(file, root, path, findings)
    if not read:
        return None
    listed = data.get("targets") if isinstance(data, Map) else data
    if not isinstance(listed, Items):
        place = data.value_location("targets") if isinstance(data, Map) else Location(path)
        findings.error(
            place,
            f"the targets are {kind(listed)}",
            "write a list of targets, or an object with `targets`",
        )
        return None
    return _by_name(listed, findings)


def _by_name(listed: Items, findings: Findings) -> Mapping[str, Map]:
    entries: dict[str, Map] = {}
    for index, value in enumerate(listed):
        place = listed.item_location(index)
        name = value.get("name") if isinstance(value, Map) else None
        if not isinstance(value, Map):
            findings.error(
                place, f"a target is {kind(value)}", "write an object with `name` and `provider`"
            )
        elif not isinstance(name, str) or not name:
            problem = f"`name` is {kind(name)}" if "name" in value else "this target has no `name`"
            findings.error(
                value.value_location("name"), problem, "write the name by which suites ask for it"
            )
        elif name in entries:
            findings.error(
                value.value_location("name"),
                f"there is a second target `{name}`",
                "give each its own name",
            )
        else:
            entries[name] = value
    return entries


_MOST_PARENTS = 20


def _inherited(name: str, entries: Mapping[str, Map], findings: Findings) -> Map | None:
    """The entry with the fields of what it extends under its own; None, with a fault, when that
    leads nowhere or in a circle."""
    entry = entries[name]
    chain = [name]
    whole = Map(entry.source, entry.place)
    while True:
        for key in entry:
            if key not in whole and (key != "extends" or len(chain) == 1):
                whole.adopt(entry, key, key)
        parent = entry.get("extends")
        if not isinstance(parent, str):
            return whole
        place = entry.value_location("extends")
        if parent not in entries:
            if len(chain) == 1:
                meant = nearest(parent, entries)
                findings.error(
                    place, f"there is no target `{parent}` to extend", _meant(meant, entries)
                )
            return None
        if parent in chain:
            findings.error(
                place,
                f"the target `{name}` extends itself, by {' → '.join((*chain, parent))}",
                "break the circle",
            )
            return None
        if len(chain) > _MOST_PARENTS:
            findings.error(
                place,
                f"the target `{name}` extends more than {_MOST_PARENTS} others in turn",
                "make the chain shorter",
            )
            return None
        chain.append(parent)
        entry = entries[parent]


def _meant(meant: str | None, known: Mapping[str, Any]) -> str:
    return f"did you mean `{meant}`?" if meant else f"write one of {one_of(sorted(known))}"


def _unusable(provider: str, entry: Map) -> Diagnostic | None:
    key = dialects.type_key(provider)
    place = entry.value_location("provider")
    if key == "vscode":
        return Diagnostic(
            place,
            "the provider `vscode` needs a desktop, which a runner has not",
            "use a `cli` target",
        )
    return None


def _read_target(
    whole: Map,
    own: Map,
    providers: Mapping[str, type[base.ProviderOptions]],
    folder: Folder,
    findings: Findings,
) -> Target | None:
    provider = whole.get("provider")
    options = providers.get(dialects.type_key(provider)) if isinstance(provider, str) else None
    if isinstance(provider, str) and provider and options is None:
        meant = nearest(dialects.type_key(provider), providers)
        advice = (
            f"did you mean `{meant}`?"
            if meant
            else f"write one of {one_of(sorted({o.provider for o in providers.values()}))}"
        )
        findings.error(
            whole.value_location("provider"), f"the provider `{provider}` is unknown", advice
        )
        return None
    own_fields = (
        {name: tuple(options.spellings.get(name, ())) for name in fields_of(options)}
        if options
        else {}
    )
    shape = dialects.Shape(
        "target",
        {**_COMMON, **own_fields},
        {k: v for k, v in _REFUSED.items() if k not in own_fields},
    )
    dialects.fold(own, shape, findings)
    data = dialects.fold(whole, shape, Findings())
    common = findings.read(TargetEntry, data, "target")
    valid = (
        findings.read(options, data, f"`{options.provider}` target", folder) if options else None
    )
    return _target(common, valid, whole) if common and valid else None


def _target(common: TargetEntry, options: base.ProviderOptions, whole: Map) -> Target:
    return Target(
        name=common.name,
        provider=options.provider,
        options=options,
        definition=plain(whole),
        location=whole.location,
        is_model=options.is_model,
        judge_target=common.judge_target,
        variables=tuple(dict.fromkeys((*variables.names_in(whole), *options.variables()))),
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
    judge = target.judge_target
    if judge is None or judge in entries:
        return
    entry = entries[target.name]
    key = "judge_target" if "judge_target" in entry else "grader_target"
    if key in entry:
        place = entry.value_location(key)
        findings.error(
            place,
            f"there is no target `{judge}` to judge",
            _meant(nearest(judge, read.known), dict.fromkeys(read.known)),
        )
