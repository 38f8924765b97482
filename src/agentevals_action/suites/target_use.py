"""Which targets a suite's tests are put to and judged by, and whether those exist."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.suite import NamedFile
from agentevals_action.model.target import TargetTable
from agentevals_action.suites import config
from agentevals_action.suites.catalog import Catalog
from agentevals_action.suites.evaluators import Declared
from agentevals_action.suites.files.diagnostics import Findings, nearest, one_of
from agentevals_action.suites.files.positions import Map
from agentevals_action.suites.targets_file import NAME, TargetsFile, read_targets
from agentevals_action.system.paths import Folder

Read = TypeVar("Read")


@dataclass(frozen=True)
class TargetUse:
    """The targets that a suite sees. `suite` is the place of its root; `default_place` where the
    suite, or the configuration, names its target. Without a targets file nothing can be told, and
    the tests that need one will end in that error. `used` gathers the names of the targets that
    tests are put to and judged by, `declared` that of the suite's own, whether or not a test comes
    to it."""

    table: TargetTable
    file: TargetsFile | None
    suite: Location
    suite_target: str | None = None
    default_place: Location | None = None
    used: dict[str, None] = field(default_factory=dict)
    declared: dict[str, None] = field(default_factory=dict)

    def check_default(self, findings: Findings) -> None:
        """Notes a fault when the target that the suite itself names is not there, whether or not a
        test comes to it."""
        if (
            not self.suite_target
            or self.file is None
            or not self.file.whole
            or self.table.agent_override
        ):
            return
        if name := self._known_target(
            self.suite_target, self.default_place or self.suite, "there is no target", findings
        ):
            self.declared[name] = None

    def agent(self, wanted: str | None, place: Location | None, findings: Findings) -> str | None:
        """Name of the target that a test is put to; None, with a fault, when there is none of that
        name."""
        name = self.table.agent(wanted or self.suite_target)
        if self.file is None or not self.file.whole:
            return name
        if name is None and "default" in (*self.file.unusable, *self.file.invalid):
            name = "default"
        if name is None:
            problem = f"no target is named, and {self.file.path} has none called `default`"
            findings.error(
                self.suite, problem, f"write `execution: {{target: …}}` with {self._known()}"
            )
            return None
        if self.table.agent_override:
            return self._existing(name, self.suite, "the input `target` names", findings)
        return self._existing(
            name,
            place if wanted and place else self.default_place or self.suite,
            "there is no target",
            findings,
        )

    def judge(self, declared: Declared, agent: str | None, findings: Findings) -> None:
        """Notes a fault when an evaluator that asks a judge has none."""
        if self.file is None or not self.file.whole or (agent is None and not declared.target):
            return
        name = self.table.judge(declared.target, agent)
        if declared.target:
            self._existing(
                declared.target,
                declared.target_location or declared.location,
                "there is no target",
                findings,
            )
        elif name is None:
            problem = f"`{declared.name}` has no judge: the target `{agent}` is no model and names no `judge_target`"
            here = ", or `target` here" if declared.options.asks_judge else ""
            findings.error(
                declared.location, problem, f"write `judge_target` in {self.file.path}{here}"
            )
        elif name == self.table.judge_override:
            self._existing(name, self.suite, "the input `judge-target` names", findings)
        else:
            self._existing(name, declared.location, "there is no target", findings)

    def _existing(self, name: str, place: Location, said: str, findings: Findings) -> str | None:
        known = self._known_target(name, place, said, findings)
        if known and known in self.table.targets:
            self.used[known] = None
        return known

    def _known_target(
        self, name: str, place: Location, said: str, findings: Findings
    ) -> str | None:
        if self.file is None:
            return name
        if diagnostic := self.file.unusable.get(name):
            findings.error(diagnostic.location, diagnostic.problem, diagnostic.advice)
            return None
        if name in self.file.invalid:
            return None
        if name not in self.table.targets:
            meant = nearest(name, self.file.known)
            problem = (
                f"{said} `{name}`"
                if said.startswith("there")
                else f"{said} `{name}`, which is not in {self.file.path}"
            )
            findings.error(
                place, problem, f"did you mean `{meant}`?" if meant else f"write {self._known()}"
            )
            return None
        return name

    def _known(self) -> str:
        known = self.file.known if self.file else ()
        return one_of(known) if known else "the name of a target, once there is one"

    def files(self) -> Mapping[str, None]:
        """The files that the commands of the used targets, and of the suite's own, name."""
        return dict.fromkeys(
            path for name in (*self.declared, *self.used) for path in self.table.targets[name].files
        )


@dataclass(frozen=True)
class FoundTargets:
    """The targets that a suite sees, the files that say so, and the time limit (seconds) of
    `.agentv/config.yaml`."""

    use: TargetUse
    files: tuple[NamedFile, ...] = ()
    timeout_seconds: float | None = None


def find_targets(
    folder: Folder, catalog: Catalog, wanted: str | None, suite: Map, findings: Findings
) -> FoundTargets:
    """Looks up the targets file and the configuration for the suite whose root is `suite` and names
    the target `wanted`."""
    files = []
    settings = config.Config("")
    if path := config.nearest_file(folder.path, folder.root, config.NAME):
        settings = _cached(
            catalog, path, findings, lambda found: config.read_config(path, folder.root, found)
        )
        if settings.target or settings.timeout_seconds:
            files.append(NamedFile(settings.path, "configuration"))
    listed = None
    if file := catalog.targets_file or config.nearest_file(folder.path, folder.root, NAME):
        listed = _cached(
            catalog,
            file,
            findings,
            lambda found: read_targets(file, folder.root, catalog.providers, found),
        )
        files.append(NamedFile(listed.path, "targets file"))
    table = TargetTable(
        path=listed.path if listed else None,
        targets=listed.seen_from(folder, findings) if listed else {},
        agent_override=catalog.target,
        judge_override=catalog.judge_target,
        default_target=settings.target,
    )
    place = suite["execution"].value_location("target") if wanted else settings.target_location
    return FoundTargets(
        TargetUse(table, listed, suite.location, wanted, place),
        tuple(files),
        settings.timeout_seconds,
    )


def _cached(
    catalog: Catalog, file: Path, findings: Findings, read: Callable[[Findings], Read]
) -> Read:
    # Many suites share a file: it is read once, and its faults are told for each of them.
    status = file.stat() if file.is_file() else None
    key = (file, status and (status.st_mtime_ns, status.st_size))
    if key not in catalog.cache:
        own = Findings()
        catalog.cache[key] = (read(own), own)
    value, own = catalog.cache[key]
    findings.add(own)
    result: Read = value
    return result
