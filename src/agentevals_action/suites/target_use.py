"""The targets that a suite sees, and checks that those exist which answer and judge its tests."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from agentevals_action.formatting import one_of
from agentevals_action.model.diagnostic import Location
from agentevals_action.model.suite import NamedFile
from agentevals_action.model.target import TargetTable
from agentevals_action.suites.catalog import Catalog
from agentevals_action.suites.evaluators import Declared
from agentevals_action.suites.files.diagnostics import Findings, did_you_mean
from agentevals_action.suites.files.positions import Map
from agentevals_action.suites.find import CONFIG, Config, nearest_file, read_config
from agentevals_action.suites.targets_file import NAME, TargetsFile, read_targets
from agentevals_action.system.paths import Folder

Read = TypeVar("Read")
_MISSING = "there is no target"


@dataclass(frozen=True)
class TargetUse:
    """The targets that a suite sees.

    `suite` is the location of its root, `default_location` that of the name of its target in the
    suite or the configuration. Without a complete targets file nothing is checked, and the tests
    that need a target end in that error. `used` collects the targets that answer and judge tests,
    `declared` is the suite's own, even if no test uses it. `files` are the files that were read,
    `timeout_seconds` the limit in `.agentv/config.yaml`."""

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
        if not self.suite_target or not self._checks or self.table.agent_override:
            return
        location = self.default_location or self.suite
        if name := self._existing(self.suite_target, location, _MISSING, findings):
            self.declared[name] = None

    @property
    def _checks(self) -> bool:
        return self.file is not None and self.file.is_complete

    def agent(
        self, wanted: str | None, location: Location | None, findings: Findings
    ) -> str | None:
        """Name of the target that answers a test; None, with an error, when it does not exist."""
        name = self.table.agent(wanted or self.suite_target)
        if self.file is None or not self._checks:
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
        if self.file is None or not self._checks or (agent is None and not declared.target):
            return
        name = self.table.judge(declared.target, agent)
        if declared.target:
            location = declared.target_location or declared.location
            self._use(declared.target, location, _MISSING, findings)
        elif name is None:
            problem = (
                f"`{declared.name}` has no judge: the target `{agent}` is not a model and names no "
                "`judge_target`"
            )
            here = ", or `target` here" if declared.options.asks_judge else ""
            advice = f"write `judge_target` in {self.file.path}{here}"
            findings.error(declared.location, problem, advice)
        elif name == self.table.judge_override:
            self._use(name, self.suite, "the input `judge-target` names", findings)
        else:
            self._use(name, declared.location, _MISSING, findings)

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
        targets=listed.seen_from(folder, findings) if listed else {},
        agent_override=catalog.target,
        judge_override=catalog.judge_target,
        default_target=config.target,
    )
    return TargetUse(
        table,
        listed,
        suite.location,
        wanted,
        suite["execution"].value_location("target") if wanted else config.target_location,
        tuple(files),
        config.timeout_seconds,
    )


def _cached(
    catalog: Catalog, file: Path, findings: Findings, read: Callable[[Findings], Read]
) -> Read:
    """Reads a file once for all suites that share it; each of them gets its errors."""
    status = file.stat() if file.is_file() else None
    key = (file, status and (status.st_mtime_ns, status.st_size))
    if key not in catalog.cache:
        own = Findings()
        catalog.cache[key] = (read(own), own)
    value, own = catalog.cache[key]
    findings.add(own)
    result: Read = value
    return result
