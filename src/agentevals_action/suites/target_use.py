"""The targets that a suite uses: found in the targets files that apply to it, and checked."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentevals_action.errors import AttemptError
from agentevals_action.formatting import one_of
from agentevals_action.model.diagnostic import Diagnostic, Location
from agentevals_action.model.files import NamedFile
from agentevals_action.model.suite import Evaluator, Suite
from agentevals_action.model.target import Target, TargetTable
from agentevals_action.model.validation.field_errors import did_you_mean
from agentevals_action.suites.catalog import Catalog
from agentevals_action.suites.diagnostics import DiagnosticCollector
from agentevals_action.suites.find import FOLDER
from agentevals_action.suites.targets_file import (
    NAME,
    Alias,
    TargetEntry,
    TargetsFile,
    advise_target,
    read_targets,
)
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import is_present
from agentevals_action.targets import base, variables

_MISSING = "there is no target"


class _Unresolved(base.ProviderOptions):
    """The target behind a `use_target` whose variable is not set: every call is an error."""

    provider = "use_target"
    is_model = True  # it may be one

    def connect(self, context: base.ProviderContext) -> base.Provider:  # noqa: ARG002  # of the interface
        """AttemptError, because the target is not known."""
        problem = "the variable of `use_target` was not set when the targets were read"
        raise AttemptError("configuration", problem, "set it in the environment of the step")


@dataclass(frozen=True)
class TargetUse:
    """The targets that a suite sees.

    `file` is None without a complete targets file: nothing is checked then, and the tests that need
    a target end in that error. `farther` are the errors of files farther up, which are reported if
    a target is missing. `suite` is the location of its root, `default_location` that of the name of
    its target in the suite. `used` collects the targets that answer and judge
    tests, `judges` those that judge, `declared` is the suite's own, even if no test uses it.
    `files` are the files that were read."""

    table: TargetTable
    file: TargetsFile | None
    suite: Location
    farther: DiagnosticCollector = field(default_factory=DiagnosticCollector)
    suite_target: str | None = None
    default_location: Location | None = None
    files: tuple[NamedFile, ...] = ()
    used: dict[str, None] = field(default_factory=dict)
    judges: dict[str, None] = field(default_factory=dict)
    declared: dict[str, None] = field(default_factory=dict)

    def check_default(self, diagnostics: DiagnosticCollector) -> None:
        """Adds an error when the suite's own target does not exist, even if no test uses it."""
        if not self.suite_target or self.file is None or self.table.agent_override:
            return
        location = self.default_location or self.suite
        if name := self._existing(self.suite_target, location, _MISSING, diagnostics):
            self.declared[name] = None

    def agent(
        self, wanted: str | None, location: Location | None, diagnostics: DiagnosticCollector
    ) -> str | None:
        """Name of the target that answers a test; None, with an error, when it does not exist."""
        name = self.table.agent(wanted or self.suite_target)
        if self.file is None:
            return name
        if name is None and "default" in self.file.entries:
            name = "default"
        if name is None:
            diagnostics.add(self.farther)
            problem = f"no target is named, and {self.file.path} has none called `default`"
            diagnostics.error(self.suite, problem, self._advice_for_default())
            return None
        if self.table.agent_override:
            return self._use(name, self.suite, "the input `target` names", diagnostics)
        if not wanted or not location:
            location = self.default_location or self.suite
        return self._use(name, location, _MISSING, diagnostics)

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

    def judge(
        self, evaluator: Evaluator, agent: str | None, diagnostics: DiagnosticCollector
    ) -> None:
        """Adds an error when an evaluator that asks a judge has none."""
        own = evaluator.judge_name()
        if self.file is None or (agent is None and not own):
            return
        name = self.table.judge(own, agent)
        if name and name in self.table.targets:
            self.judges[name] = None
            if evaluator.judge_temperature() is not None:
                self._warn_of_temperature(self.table.targets[name], evaluator, diagnostics)
        if own:
            location = evaluator.target_location or evaluator.location
            self._use(own, location, _MISSING, diagnostics)
        elif name is None:
            problem = (
                f"`{evaluator.name}` has no judge: the target `{agent}` is not a model and names "
                "no `judge_target`"
            )
            here = ", or `target` here" if evaluator.asks_judge else ""
            advice = f"write `judge_target` in {self.file.path}{here}"
            diagnostics.error(evaluator.location, problem, advice)
        elif name == self.table.judge_override:
            self._use(name, self.suite, "the input `judge-target` names", diagnostics)
        else:
            entry = self.file.entries.get(agent or "")
            location = (entry and entry.judge_location) or evaluator.location
            self._use(name, location, "there is no judge target", diagnostics)

    @staticmethod
    def _warn_of_temperature(
        judge: Target, evaluator: Evaluator, diagnostics: DiagnosticCollector
    ) -> None:
        if not judge.is_model:
            problem = f"`temperature` has no effect: the judge `{judge.name}` is not a model"
            diagnostics.warn(evaluator.location, problem, "remove it, or name a model")

    def _use(
        self, name: str, location: Location, problem: str, diagnostics: DiagnosticCollector
    ) -> str | None:
        known = self._existing(name, location, problem, diagnostics)
        if known and known in self.table.targets:
            self.used[known] = None
        return known

    def _existing(
        self, name: str, location: Location, problem: str, diagnostics: DiagnosticCollector
    ) -> str | None:
        if self.file is None:
            return name
        if entry := self.file.entries.get(name):
            diagnostics.add(entry.diagnostics)
            return name if name in self.table.targets else None
        diagnostics.add(self.farther)
        where = f", which is not in {self.file.path}" if problem.startswith("the input") else ""
        advice = did_you_mean(name, self.file.entries, f"write {self._known()}")
        diagnostics.error(location, f"{problem} `{name}`{where}", advice)
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
    suite: Location,
    diagnostics: DiagnosticCollector,
) -> TargetUse:
    """Reads the targets files for the suite whose root is `suite` and names the target `wanted`.
    A target that the nearest file lacks is looked up in those above it."""
    listed: TargetsFile | None = None
    farther = DiagnosticCollector()
    paths = [catalog.targets_file] if catalog.targets_file else _files_above(folder)
    for path in paths:
        if path not in catalog.targets_files:
            catalog.targets_files[path] = read_targets(path, folder.root, catalog.providers)
        file = catalog.targets_files[path]
        if listed is None:
            listed = file
            diagnostics.add(file.diagnostics)
        else:
            listed = replace(listed, entries={**file.entries, **listed.entries})
            farther.add(file.diagnostics)
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
    )
    return TargetUse(
        table,
        listed if listed and listed.is_complete else None,
        suite,
        farther,
        suite_target=wanted[0] if wanted else None,
        default_location=wanted[1] if wanted else None,
        files=(NamedFile(listed.path, "targets file"),) if listed else (),
    )


def _files_above(folder: Folder) -> Iterator[Path]:
    """The targets files of a folder and of those above it up to the root, the nearest first."""
    for above in (folder.path, *folder.path.parents):
        if is_present(file := above / FOLDER / NAME):
            yield file
        if above == folder.root:
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
            own = DiagnosticCollector()
            own.add(written.diagnostics)
            own.add(entry.diagnostics)
            files = _command_files(entry.target, folder, own)
            target = entry.target.model_copy(update={"files": files})
            entry = replace(entry, diagnostics=own, target=None if own.errors else target)
        seen[name] = entry
    return seen


def _behind(
    name: str, entries: Mapping[str, TargetEntry], folder: Folder, catalog: Catalog
) -> TargetEntry:
    """The entry to which the `use_target` of the target `name` leads."""
    chain = [name]
    while (alias := (entry := entries[chain[-1]]).alias) is not None:
        written = wanted = str(alias.definition["use_target"])
        problem, advice = "", ""
        if names := variables.names_in(wanted):
            try:
                values = variables.read_variables(catalog.environ, folder.root, folder.path)
            except AttemptError as error:
                values, problem, advice = {}, str(error), error.hint
            if not problem and any(missing not in values for missing in names):
                return replace(entry, target=_unresolved(alias, names))
            wanted = "" if problem else variables.resolve(wanted, values).strip()
        if not problem and wanted not in entries:
            # The value of a variable may be a secret.
            problem = f"there is no target `{written}`"
            problem += ", with the value that the variable has" if names else ""
            advice = advise_target("" if names else wanted, entries)
        elif not problem and wanted in chain:
            problem = f"the target `{name}` leads to itself, by {' → '.join((*chain, wanted))}"
            advice = "break the circle"
        if problem:
            diagnostics = DiagnosticCollector()
            diagnostics.add(entry.diagnostics)
            diagnostics.error(alias.name_location, problem, advice)
            return TargetEntry(diagnostics)
        chain.append(wanted)
    return entry


def _unresolved(alias: Alias, names: Sequence[str]) -> Target:
    return Target(
        name=alias.definition["name"],
        provider=_Unresolved.provider,
        options=_Unresolved(),
        definition=alias.definition,
        location=alias.location,
        is_model=True,
        variables=tuple(names),
    )


def _command_files(
    target: Target, folder: Folder, diagnostics: DiagnosticCollector
) -> tuple[str, ...]:
    if not isinstance(target.options, base.ProviderOptions):
        return ()
    try:
        return tuple(target.options.files(folder))
    except (OSError, ValueError) as error:
        problem = f"a file of the target `{target.name}` cannot be used: {error}"
        diagnostics.error(target.location, problem, "name a file of the repository")
        return ()
