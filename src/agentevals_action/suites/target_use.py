"""The targets that a suite uses, checked where its tests and evaluators name them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentevals_action.formatting import QUOTE_LIMIT, cut_line, join_choices, joined
from agentevals_action.model.diagnostic import Diagnostic, Location, NamedFile
from agentevals_action.model.evaluator import Evaluator
from agentevals_action.model.skill import Skill
from agentevals_action.model.suite import Suite
from agentevals_action.model.target import TargetTable
from agentevals_action.model.variant import Variant
from agentevals_action.suites.documents.diagnostics import DiagnosticCollector
from agentevals_action.suites.find import FOLDER
from agentevals_action.suites.find_skills import SkillSuites
from agentevals_action.suites.reading import FileReader, Imports
from agentevals_action.suites.targets_file import (
    NAME,
    TargetEntry,
    TargetsFile,
    read_targets,
    read_targets_above,
)
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.files.regular_files import is_present
from agentevals_action.validation.field_errors import did_you_mean

_MISSING = "there is no target"
#: Names under which no targets file is read, from the folder of a suite and those above it.
_MISPLACED = (f"{FOLDER}/targets.yml", "targets.yaml", "targets.yml", f"evals/{NAME}")


@dataclass(frozen=True)
class Catalog:
    """What the suites of a checkout share. `targets_file` (absolute) replaces the search for
    `.agentv/targets.yaml`; `target` and `judge_target` are the user's overrides. `environ` are the
    variables of the step, `allowed` the names of variables that suites may use. With `strict`,
    warnings are errors. `targets_files` and the `imports` of programs are caches. `files` are the
    paths that git knows, None outside of a repository; `packages` are the folders with Python
    packages; `skills` are the suites of skills."""

    targets_file: Path | None = None
    target: str | None = None
    judge_target: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    allowed: frozenset[str] = frozenset()
    strict: bool = False
    targets_files: dict[Path, TargetsFile] = field(default_factory=dict)
    imports: Imports = field(default_factory=dict)
    files: frozenset[str] | None = None
    packages: Sequence[Path] = ()
    skills: SkillSuites = field(default_factory=SkillSuites)

    def works_with_skills(self, folder: Folder) -> bool:
        """Whether the target `default` (or the user's) answers tests of skills in a folder. A
        target with errors does: its errors are reported."""
        file = self.find_targets(folder)
        if file.paths and not file.is_complete:
            return True
        entry = file.entries.get(self.target or "default")
        return entry is not None and (entry.target is None or bool(entry.target.skill_folders))

    def find_targets(self, folder: Folder) -> TargetsFile:
        """The targets for the suites in a folder."""
        file, files = self.targets_file, self.targets_files
        if file is None:
            return read_targets_above(folder, self.environ, files)
        if file not in files:
            files[file] = read_targets(file, folder.root, self.environ)
        return files[file]


class TargetUse:
    """`table` has the targets that a suite sees, `used` the names of the targets that its tests
    use, to answer or to judge.

    Without a targets file nothing is checked: the tests that need a target end in that error.
    `suite` has valid fields, and `start` is the location of its root."""

    def __init__(self, reader: FileReader, catalog: Catalog, suite: Suite, start: Location) -> None:
        self._diagnostics, self._start = reader.diagnostics, start
        self._target = suite.default_target
        place, execution_target = suite.places.get("target"), suite.execution.target
        self._named = suite.execution.places.get("target") or place or start
        if place and execution_target and suite.target != execution_target:
            problem = "`target` and `execution.target` are the same field and differ"
            reader.error(place, problem, "keep one of them")
        self.used: dict[str, None] = {}
        self._judges: dict[str, None] = {}
        self._of_variants: dict[str, None] = {}
        self._file = catalog.find_targets(reader)
        self._diagnostics.add(self._file.diagnostics)
        self._entries = {
            name: _with_files(entry, reader) for name, entry in self._file.entries.items()
        }
        self.table = TargetTable(
            path=self._file.path,
            targets={name: entry.target for name, entry in self._entries.items() if entry.target},
            agent_override=catalog.target,
            judge_override=catalog.judge_target,
            names=tuple(self._entries),
        )
        # The suite's own target is checked even if no test uses it.
        self._own = None
        if self._target and self._file.is_complete and not catalog.target:
            self._own = self._find(self._target, self._named, _MISSING)

    def agent(self, wanted: str | None, location: Location | None) -> str | None:
        """Name of the target that answers a test, which names the target `wanted` at a location;
        None, with an error, when it does not exist."""
        choice = self.table.agent_choice(wanted or self._target)
        if not self._file.is_complete:
            return choice.name
        if choice.reason == "input":
            return self._use(choice.name, self._start, "the input `target` names")
        name = choice.name or ("default" if "default" in self._entries else None)
        if name is not None:
            return self._use(name, location or self._named, _MISSING)
        problem = f"no target is named, and {self._file.path} has none called `default`"
        line = f"`execution: {{target: …}}` with {self._known()}"
        advice = f"write {line} in the suite, or call a target `default`"
        self._diagnostics.error(self._start, problem, advice)
        return None

    def check_skills(self, agent: str | None, location: Location, skills: Iterable[Skill]) -> None:
        """Adds an error when the target of a test finds no skill in a folder, or cannot invoke one
        of the `skills`. Prepared answers are of an agent that could."""
        target = self.table.get(agent)
        if target is None or target.deterministic or target.stores_answers:
            return
        manual = next((skill.name for skill in skills if skill.manual), None)
        if not target.skill_folders:
            problem = f"the target `{target.name}` works in no folder, so it finds no skill there"
            advice = "name a coding agent, or a target of the provider `cli`"
        elif manual and not target.skill_mark:
            problem = f"the target `{target.name}` cannot invoke the skill `{manual}`"
            advice = "remove its `disable-model-invocation`, or name another coding agent"
        else:
            return
        self._diagnostics.error(location, problem, advice)

    def check_tools(self, agent: str | None, location: Location, *, has_commands: bool) -> None:
        """Adds an error when the target of a test cannot reach the tools of the suite, or its
        commands, and a warning when it has other tools. Prepared answers are of an agent that
        could."""
        target = self.table.get(agent)
        if target is None or target.deterministic or target.stores_answers:
            return
        if not target.takes_tools:
            problem = f"the target `{target.name}` cannot call tools that the suite answers"
            advice = "name a coding agent, or a target of the provider `cli`, `python` or `http`"
        elif has_commands and (refusal := target.refuse_commands()):
            problem, advice = f"the target `{target.name}` {refusal[0]}", refusal[1]
        else:
            if servers := target.find_own_servers():
                problem = f"the target `{target.name}` starts MCP servers that the suite does not "
                problem += f"answer ({cut_line(joined(servers), QUOTE_LIMIT)})"
                self._diagnostics.warn(location, problem, "remove them from its `args`")
            return
        self._diagnostics.error(location, problem, advice)

    def judge(self, evaluator: Evaluator, agent: str | None) -> None:
        """Adds an error for each judge of an evaluator that does not exist or is invalid."""
        places = dict(enumerate(evaluator.target_locations))
        for index, name in enumerate(evaluator.judge_names() or (None,)):
            self._judge(evaluator, agent, name, places.get(index))

    def _judge(
        self, evaluator: Evaluator, agent: str | None, wanted: str | None, place: Location | None
    ) -> None:
        if not self._file.is_complete or (agent is None and not wanted):
            return
        choice = self.table.judge_choice(wanted, self.table.get(agent))
        if choice.name is None:
            problem = (
                f"`{evaluator.name}` has no judge: the target `{agent}` is not a model and names "
                "no `judge_target`"
            )
            here = ", or `target` here" if evaluator.asks_judge else ""
            advice = f"write `judge_target` in {self._file.path}{here}"
            self._diagnostics.error(evaluator.location, problem, advice)
            return
        location, problem = place, _MISSING
        if choice.reason == "input":
            location, problem = self._start, "the input `judge-target` names"
        elif choice.reason == "judge_target":
            places = self.table.targets[agent or ""].places
            location = places.get("judge_target") or places.get("grader_target")
            problem = "there is no judge target"
        if name := self._use(choice.name, location or evaluator.location, problem):
            self._judges[name] = None
            judge = self.table.targets[name]
            if evaluator.judge_temperature() is not None and not judge.is_model:
                problem = f"`temperature` has no effect: the judge `{judge.name}` is not a model"
                advice = "remove it, or name a model"
                self._diagnostics.warn(evaluator.location, problem, advice)

    def variant(self, variant: Variant) -> bool:
        """Whether the target of a variant can be used; if not, its errors are added."""
        location = variant.target_location or variant.location
        if self._file.is_complete and not self._find(variant.target or "", location, _MISSING):
            return False
        self._of_variants[variant.target or ""] = None
        return True

    def _use(self, name: str | None, location: Location, problem: str) -> str | None:
        target = self._find(name or "", location, problem)
        if target:
            self.used[target] = None
        return target

    def _find(self, name: str, location: Location, problem: str) -> str | None:
        """The name of a target that can be used; None, with errors, of any other."""
        if entry := self._entries.get(name):
            self._diagnostics.add(entry.diagnostics)
            return name if entry.target else None
        where = f", which is not in {self._file.path}" if problem.startswith("the input") else ""
        advice = did_you_mean(name, self._entries, f"write {self._known()}")
        self._diagnostics.error(location, f"{problem} `{name}`{where}", advice)
        return None

    def _known(self) -> str:
        names = sorted(self._entries)
        return join_choices(names) if names else "the name of a target, once there is one"

    def warn_of_unused(self) -> None:
        """Adds the errors of targets that this suite does not use as warnings."""
        overrides = (self.table.agent_override, self.table.judge_override)
        used = {*self.used, *self._judges, *self._of_variants, self._own, self._target, *overrides}
        for name, entry in self._entries.items():
            for error in () if name in used else entry.diagnostics.errors:
                self._diagnostics.warn(error.location, error.problem, error.advice)

    def files(self) -> Iterable[NamedFile]:
        """The targets files, whose targets may extend each other, and the files of the programs of
        the used targets and the suite's own: a program that judges is no part of the agent."""
        for path in self._file.paths:
            yield NamedFile(path, "targets file")
        own_target = (self._own,) if self._own else ()
        for name in dict.fromkeys((*self._judges, *own_target, *self.used, *self._of_variants)):
            target = self.table.targets[name]
            owner = "judge" if name in self._judges else "target"
            for file in target.files:
                yield replace(file, role=f"{owner}'s {file.role}")


def _with_files(entry: TargetEntry, folder: Folder) -> TargetEntry:
    """The entry with the files in its command, which a suite names from its own folder."""
    if entry.target is None:
        return entry
    try:
        files = tuple(entry.target.named_files(folder))
    except (OSError, ValueError) as error:
        diagnostics = DiagnosticCollector()
        diagnostics.add(entry.diagnostics)
        problem = f"a file of the target `{entry.target.name}` cannot be used: {error}"
        diagnostics.error(entry.target.location, problem, "name a file of the repository")
        return TargetEntry(diagnostics)
    return replace(entry, target=entry.target.model_copy(update={"files": files}))


def undeclared_target(suite: Suite) -> Diagnostic | None:
    """The error of a suite that no targets file applies to, whose tests need a target."""
    test = next(iter(suite.tests), None)
    if test is None or suite.targets.path is not None:
        return None
    name = suite.choose_target(test)
    problem = f"the target `{name}` is not declared" if name else "its tests have no target"
    location = test.location if test.target else Location(suite.path)
    advice = "write it, or run `agentevals-action init`"
    if misplaced := _misplaced_targets(suite):
        advice = f"move `{misplaced}` there"
    return Diagnostic(location, f"{problem}: there is no `{FOLDER}/{NAME}`", advice)


def _misplaced_targets(suite: Suite) -> str | None:
    """A file near a suite that is called like a targets file and is none."""
    folder = Folder(suite.root, suite.folder)
    for above in (suite.folder, *suite.folder.parents):
        for name in _MISPLACED if above.is_relative_to(suite.root) else ():
            if is_present(above / name):
                return folder.relative(above / name)
    return None
