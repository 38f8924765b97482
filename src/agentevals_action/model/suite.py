"""A suite and its tests, as the whole program uses them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    Field,
    ValidationInfo,
    WrapValidator,
    field_validator,
)

from agentevals_action.model.diagnostic import Diagnostic, Location, NamedFile
from agentevals_action.model.evaluator import AnyEvaluator, Data, Evaluator, Gate, Rubrics, Task
from agentevals_action.model.messages import FileBlocks, Question
from agentevals_action.model.runner import Runner
from agentevals_action.model.skill import Fixture, Skill
from agentevals_action.model.target import Choice, Target, TargetTable
from agentevals_action.model.tools import Command, ToolEntries
from agentevals_action.model.variant import Variant, Variants
from agentevals_action.model.workspace import Workspace
from agentevals_action.validation.file_model import (
    Computed,
    FileContext,
    FileModel,
    ListOf,
    NonEmpty,
    expected,
    spelled,
)

#: The longest name that tables and titles of checks show completely.
MAX_NAME = 64
_NAME_PATTERN = r"^[a-z][a-z0-9]*(-+[a-z0-9]+)*$"


def make_name(words: str, kind: str = "") -> str:
    """A valid name of a suite from any words, with a `kind` at its end."""
    slug = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
    slug = slug if slug[:1].isalpha() else f"suite-{slug}".rstrip("-")
    slug = slug if len(slug) > 1 else f"suite-{slug}"
    return slug[: MAX_NAME - len(kind)].rstrip("-") + kind


Seconds = Annotated[float, Field(ge=1, le=3600)]


_EVALUATORS = ListOf[AnyEvaluator]


def _evaluators(description: str, **others: Any) -> Any:
    names = ("evaluators", "assert", "assertions")
    return spelled(*names, default=(), description=description, **others)


class SuiteExecution(FileModel):
    """Defaults for every test of the suite."""

    noun = "`execution`"

    evaluators: _EVALUATORS = _evaluators("The same as `assert`.", exclude=True)
    target: NonEmpty | None = Field(
        default=None,
        description="Name of the target (see .agentv/targets.yaml) that answers the tests.",
    )
    timeout_seconds: Seconds | None = Field(
        default=None, description="Time limit of each test in seconds, 1-3600."
    )

    places: Computed[Mapping[str, Location]] = Field(default={})


class TestExecution(SuiteExecution):
    """Overrides for one test."""

    __test__ = False  # pytest: not a test case

    skip_defaults: bool = Field(
        default=False, description="Leaves out the suite's evaluators and its input for this test."
    )


def _read_workspace(value: Any, validate: Any, info: ValidationInfo) -> Any:
    if isinstance(info.context, FileContext):
        if isinstance(value, str) and value:
            return info.context.read_file(value, Workspace)
        if not isinstance(value, dict):
            raise expected("an object, or the path of a YAML file that contains one")
    return validate(value)


_WORKSPACE = Annotated[
    Workspace | None, WrapValidator(_read_workspace, json_schema_input_type=NonEmpty | Workspace)
]


class Test(Task):
    """One test, effective: the suite's messages and evaluators are already in it, in the order
    of docs/reference/suites.md."""

    __test__ = False  # pytest: not a test case
    noun = "test"

    rubrics: Rubrics | None = Field(
        default=None,
        description="Criteria that a judge checks one by one: texts, or objects with id, outcome, "
        "weight, required.",
    )
    evaluators: _EVALUATORS = _evaluators(
        "The evaluators of the answer; plain strings make one rubric."
    )
    workspace: _WORKSPACE = Field(
        default=None,
        description="The folder that the agent works in: its fields replace the suite's, one by "
        "one.",
    )
    tools: ToolEntries = Field(
        default=(),
        description="Tools that this test answers, over those of the suite.",
    )
    commands: ListOf[Command] = Field(
        default=(),
        description="Commands that this test answers, over those of the suite.",
    )
    execution: TestExecution = Field(
        default=TestExecution(), description="Overrides for this test."
    )
    input_files: FileBlocks = Field(
        default=(), description="Files that precede the `input`, which must be a text."
    )
    vars: dict[str, Any] | None = Field(
        default=None,
        description="Variables for `{{ name }}` in `input`, `criteria` and `expected_output`.",
    )
    description: str | None = Field(default=None, description="For readers.")
    conversation_id: str | None = Field(
        default=None,
        description="Groups the turns of a conversation, which the agent itself must remember.",
    )
    location: Computed[Location] = Location("")
    files: Computed[tuple[NamedFile, ...]] = ()
    fixtures: Computed[tuple[Fixture, ...]] = ()

    @property
    def target(self) -> str | None:
        """Name of the target that answers, if the test names one."""
        return self.execution.target

    @property
    def timeout_seconds(self) -> float | None:
        """The test's own time limit."""
        return self.execution.timeout_seconds

    @property
    def has_tools(self) -> bool:
        """Whether the suite answers tools or commands of its agent."""
        return bool(self.tools or self.commands)

    @property
    def scoring(self) -> tuple[Evaluator, ...]:
        """The evaluators that score an answer."""
        return tuple(evaluator for evaluator in self.evaluators if not evaluator.compares)

    @property
    def comparing(self) -> tuple[Evaluator, ...]:
        """The evaluators that compare head's answer with base's."""
        return tuple(evaluator for evaluator in self.evaluators if evaluator.compares)

    @property
    def skills(self) -> tuple[Skill, ...]:
        """The skills that are installed for its agent."""
        return self.workspace.installed if self.workspace else ()

    @property
    def gates(self) -> tuple[Gate, ...]:
        """Every gate declared for this test, in suite order."""
        return tuple(gate for outer in self.evaluators for gate in self.list_gates(outer))

    def without_skill(self) -> "Test | None":
        """The test of an agent without the skills; None if it installs no skill, or if its
        evaluators only score whether skills are opened."""
        evaluators = tuple(
            evaluator
            for evaluator in self.scoring
            if all(inner.type != "skill_trigger" for inner in evaluator.walk())
        )
        if not (self.workspace and self.skills and evaluators):
            return None
        workspace = self.workspace.model_copy(update={"installed": ()})
        return self.model_copy(update={"workspace": workspace, "evaluators": evaluators})

    def list_gates(self, evaluator: Evaluator) -> Iterator[Gate]:
        """The gates of one of its evaluators; annotations about the suite's gates go to the
        test."""
        return evaluator.gates(self.location if evaluator.origin == "suite" else None)


class Suite(FileModel):
    """A suite of tests; one that is loaded has no errors.

    `path` is relative to the repository root `root`; `folder` is the absolute folder of its file.
    `files` are the files that the suite and its tests name, itself and its targets file included,
    each once. `own_targets` are the names of the targets that answer and judge its tests. With a
    `variant`, this is that arm of the suite.

    A suite with a `runner` is a file of that program's own format: its tests are known when it has
    run."""

    noun = "suite"

    name: Annotated[str, Field(min_length=2, max_length=MAX_NAME)] = Field(
        default="",
        json_schema_extra={"pattern": _NAME_PATTERN},
        description="Name of the suite: lower case letters, digits and single hyphens, 2-64 "
        "characters.",
    )
    version: str | float | None = Field(default=None, description='Version of the format, "1.0".')
    description: Annotated[str, Field(max_length=2048)] | None = Field(
        default=None, description="For readers, up to 2048 characters."
    )
    metadata: Data = Field(
        default={}, description="Anything; author, license, tags and skill are known names."
    )
    target: NonEmpty | None = Field(
        default=None, description="AgentV: the same as `execution.target`."
    )
    execution: SuiteExecution = Field(
        default=SuiteExecution(), description="Defaults for every test."
    )
    input: Question = spelled(
        "input",
        "input_messages",
        default=(),
        description="Messages that precede the messages of every test.",
    )
    input_files: FileBlocks = Field(
        default=(), description="Files that precede the `input` of every test."
    )
    evaluators: _EVALUATORS = _evaluators("The evaluators of every test.")
    workspace: _WORKSPACE = Field(
        default=None,
        description="The folder that the agent works in, or the path of a YAML file that describes "
        "it.",
    )
    tools: ToolEntries = Field(
        default=(), description="Tools that the suite answers, in place of the real ones."
    )
    commands: ListOf[Command] = Field(
        default=(),
        description="Commands that the suite answers, in place of the real ones.",
    )
    tests: Annotated[
        tuple[Test, ...],
        BeforeValidator(
            tuple,
            json_schema_input_type=NonEmpty | Annotated[list[NonEmpty | Test], Field(min_length=1)],
        ),
    ] = spelled(
        "tests",
        "evalcases",
        "eval_cases",
        default=(),
        description="The tests: a list of tests and paths, or one path: of a YAML or JSONL file, "
        "or a glob of such files.",
    )
    variants: Variants = Field(
        default=(),
        description="Other arms of the same tests, which the suite is compared with on head: with "
        "another target, or without the skill.",
    )

    places: Computed[Mapping[str, Location]] = Field(default={})
    path: Computed[str] = ""
    root: Computed[Path] = Path()
    folder: Computed[Path] = Path()
    targets: Computed[TargetTable] = Field(default_factory=TargetTable)
    files: Computed[tuple[NamedFile, ...]] = ()
    warnings: Computed[tuple[Diagnostic, ...]] = ()
    own_targets: Computed[tuple[str, ...]] = ()
    variant: Computed[str] = ""
    runner: Computed[Runner | None] = None

    @field_validator("name")
    @classmethod
    def _is_slug(cls, value: str) -> str:
        if not re.fullmatch(_NAME_PATTERN, value):
            raise ValueError(
                f"{value!r} is not a valid name; write lower case letters, digits and hyphens, a "
                "letter first, as `code-review`"
            )
        return value

    @property
    def default_target(self) -> str | None:
        """Name of the target of the tests that name none."""
        return self.execution.target or self.target

    @property
    def timeout_seconds(self) -> float | None:
        """The time limit of the tests that set none."""
        return self.execution.timeout_seconds

    @property
    def program(self) -> str:
        """The name of the runner that runs the suite, whose tests are known when it has run; empty
        if the action runs it."""
        return self.runner.name if self.runner else ""

    @property
    def entry(self) -> Mapping[str, Any] | None:
        """The entry of its runner, without its location; None if the action runs the suite."""
        return self.runner.model_dump(exclude={"location"}) if self.runner else None

    @property
    def key(self) -> tuple[Path, str, str]:
        """What identifies it among the suites and arms of a run: tree, path, variant."""
        return self.root, self.path, self.variant

    @property
    def used_targets(self) -> tuple[str, ...]:
        """The names of the targets that answer and judge its tests, also in its variants."""
        others = [variant.target for variant in self.variants if variant.target]
        return tuple(dict.fromkeys((*self.own_targets, *others)))

    @property
    def judges(self) -> frozenset[str | None]:
        """The names of the targets that judge for evaluators that name no target."""
        return frozenset(
            choice.name
            for test in self.tests
            for evaluator in test.evaluators
            for inner in evaluator.walk()
            if inner.needs_judge() and not inner.judge_names()
            for choice in self.judge_choices(inner, self.find_agent(test))
        )

    @property
    def installs_skills(self) -> bool:
        """Whether the agent of all its tests works in a folder that has only the tests' skills."""
        return bool(self.tests) and all(
            test.workspace is not None and test.workspace.skills for test in self.tests
        )

    @property
    def arms(self) -> tuple["Suite", ...]:
        """The suite in each of its variants."""
        return tuple(map(self.arm, self.variants))

    def arm(self, variant: Variant) -> "Suite":
        """The suite in a variant: with another target and the same judge; without the skill, only
        tests that install a skill, and no evaluator that scores whether a skill is opened."""
        targets, tests, names = self.targets, self.tests, self.own_targets
        if variant.target:
            judge = next(iter(self.judges), None)
            targets = replace(targets, agent_override=variant.target, judge_override=judge)
            names = (variant.target, *names)
        if not variant.skill:
            tests = tuple(filter(None, (test.without_skill() for test in tests)))
        changed = {"targets": targets, "tests": tests, "own_targets": names}
        return self.model_copy(
            update={**changed, "variants": (), "variant": variant.name, "warnings": ()}
        )

    def with_tests(self, tests: Iterable[Test]) -> "Suite":
        """The suite with these of its tests."""
        return self.model_copy(update={"tests": tuple(tests)})

    def choose_target(self, test: Test) -> str | None:
        """Name of the target that answers a test."""
        return self.targets.agent(test.target or self.default_target)

    def find_agent(self, test: Test) -> Target | None:
        """The target that answers a test; None if it is not declared."""
        return self.targets.get(self.choose_target(test))

    def judge_choices(self, evaluator: Evaluator, agent: Target | None) -> Sequence[Choice]:
        """Which targets judge for an evaluator of an agent's answers, and why; at least one."""
        names = evaluator.judge_names() or (None,)
        return tuple(self.targets.judge_choice(name, agent) for name in names)

    def find_judges(self, evaluator: Evaluator, agent: Target | None) -> Sequence[Target]:
        """The targets that judge for an evaluator, as far as they are declared; none if it needs
        no judge."""
        choices = self.judge_choices(evaluator, agent) if evaluator.needs_judge() else ()
        return tuple(judge for choice in choices if (judge := self.targets.get(choice.name)))

    def is_deterministic(self, test: Test) -> bool:
        """Whether the agent and all evaluators of a test give the same result each time, so that
        one sample is enough. A model does not, whatever its temperature; nor does a program that
        judges."""
        agent = self.find_agent(test)
        if agent is None or not agent.deterministic:
            return False
        return all(
            self._gives_same_score(inner, agent)
            for evaluator in test.scoring
            for inner in evaluator.walk()
        )

    def _gives_same_score(self, evaluator: Evaluator, agent: Target) -> bool:
        if not evaluator.needs_judge():
            return evaluator.deterministic
        judges = self.find_judges(evaluator, agent)
        is_steady = bool(judges) and all(judge.deterministic for judge in judges)
        return evaluator.asks_judge and is_steady


@dataclass(frozen=True)
class BrokenSuite:
    """A suite file that cannot be used: its errors, the files that it names as far as they could be
    read, and the valid targets that it sees."""

    path: str
    errors: tuple[Diagnostic, ...]
    files: tuple[NamedFile, ...] = ()
    targets: TargetTable = field(default_factory=TargetTable)
