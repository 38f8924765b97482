"""The nouns of a suite: messages, evaluators, tests and the suite itself. They are read from a file
in every dialect, and the whole program uses them."""

import re
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    ValidationInfo,
    WrapValidator,
    field_validator,
    model_validator,
)

from agentevals_action.formatting import join_choices
from agentevals_action.model.diagnostic import Diagnostic, Location, NamedFile, missing_program
from agentevals_action.model.messages import Answer, FileBlocks, Message, Question
from agentevals_action.model.result import Score
from agentevals_action.model.runner import Runner
from agentevals_action.model.skill import Fixture, Skill
from agentevals_action.model.target import Choice, Target, TargetTable
from agentevals_action.model.trace import Trace
from agentevals_action.model.workspace import Workspace
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.program import Program
from agentevals_action.validation.field_errors import did_you_mean
from agentevals_action.validation.file_model import (
    Computed,
    FileContext,
    FileModel,
    ListOf,
    NonEmpty,
    Steps,
    Weight,
    check_fields,
    errors_at,
    expected,
    get_folder,
    locate,
    spelled,
)

Origin = Literal["test", "rubrics", "suite", "default"]

#: The longest name that tables and titles of checks show completely.
MAX_NAME = 64
#: The score that an evaluator with `required: true` must reach.
REQUIRED_SCORE = 0.8

#: Characters of a name of an evaluator that is made from type and value.
_GENERATED_NAME = 40
_NAME_PATTERN = r"^[a-z][a-z0-9]*(-+[a-z0-9]+)*$"


def make_name(words: str, kind: str = "") -> str:
    """A valid name of a suite from any words, with a `kind` at its end."""
    slug = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
    slug = slug if slug[:1].isalpha() else f"suite-{slug}".rstrip("-")
    slug = slug if len(slug) > 1 else f"suite-{slug}"
    return slug[: MAX_NAME - len(kind)].rstrip("-") + kind


Seconds = Annotated[float, Field(ge=1, le=3600)]


def _empty_if_none(value: Any) -> Any:
    return {} if value is None else value


#: Data of the user's own.
Data = Annotated[dict[str, Any], BeforeValidator(_empty_if_none)]


@dataclass(frozen=True)
class Gate:
    """Something `required`: `name` is the path of names from the test's evaluator down, joined by
    `/`; `location` is where an annotation goes (the gate's own entry, or the test when the gate is
    the suite's)."""

    name: str
    location: Location


@dataclass(frozen=True)
class Mismatch:
    """A reason why an evaluator's options do not fit a test."""

    location: Location | None
    problem: str
    advice: str


#: Sends messages to the evaluator's judge and returns the text of its reply; raises AttemptError of
#: kind `judge` or `timeout`.
Ask = Callable[["Evaluator", Sequence[Message]], Awaitable[str]]


@dataclass(frozen=True)
class Judges:
    """The targets that the program of a code judge may call.

    `default` is the name of the evaluator's judge, `names` are all targets of the suite. `ask`
    sends messages to one of them; AttemptError if it does not answer. The test pays for the calls.
    """

    default: str
    names: tuple[str, ...]
    ask: Callable[[str, Sequence[Message]], Awaitable[Trace]]


@dataclass(frozen=True)
class Case:
    """One answer, and the context in which it is scored.

    `root` is the repository root of the tree under test, `timeout` the test's limit in seconds.
    `program` returns the program of a judge for its words, its folder in `root`, and variables that
    it sees besides its environment. `workspace` is the folder in which the agent worked and
    `file_changes` the unified diff of its changes; both are None without a workspace. `judges`
    returns the targets that a program may call for an evaluator; AttemptError of kind
    `configuration` if there is no judge. `judge_path` returns the path from which a judge runs for
    a path in `root`. `notice` receives a sentence for the reader of the report."""

    test: "Test"
    trace: Trace
    root: Path
    timeout: float
    program: Callable[[Sequence[str], Path, Mapping[str, str]], Program]
    ask: Ask
    judges: Callable[["Evaluator"], Judges]
    notice: Callable[[str], None]
    workspace: Path | None = None
    file_changes: str | None = None
    judge_path: Callable[[Path], Path] = lambda path: path


def _read_required(value: Any) -> Any:
    if value is None:
        raise ValueError("it is empty; write `true`, a number over 0 and up to 1, or leave it out")
    return value


class Evaluator(FileModel):
    """One evaluator: the fields that all types have in common.

    Each type is a subclass, which adds its own fields and implements `evaluate`. In its name, `-`
    and `_` are equal. `deterministic` types give the same score for the same answer. With
    `asks_judge`, the field `target` names a judge; with `runs_programs`, it runs a program of the
    repository. With `passes_fields`, unknown fields are part of `config`.

    `location` is that of its entry, `target_location` that of its judge's name. `files` are those
    that it names."""

    noun = "evaluator"

    #: All types by their names and aliases.
    types: ClassVar[Mapping[str, type["Evaluator"]]] = {}

    type: ClassVar[str]
    deterministic: ClassVar[bool] = True
    asks_judge: ClassVar[bool] = False
    runs_programs: ClassVar[bool] = False
    passes_fields: ClassVar[bool] = False

    written_type: str = spelled(
        "type", default="", description="The type of evaluator; `-` and `_` are equal in it."
    )
    name: NonEmpty = Field(
        default="",
        description="Shown in results and gates; made from type and value when missing.",
    )
    weight: Weight = Field(default=1.0, description="Weight in the test's score, 0 to 1,000,000.")
    required: Annotated[
        bool | Annotated[float, Field(gt=0, le=1)] | None,
        BeforeValidator(
            _read_required, json_schema_input_type=bool | Annotated[float, Field(gt=0, le=1)]
        ),
    ] = Field(
        default=None,
        description="Makes it a gate that fails the test: true (0.8 must be reached) or the score "
        "that must be reached.",
    )
    min_score: Annotated[float, Field(gt=0, le=1)] | None = Field(
        default=None, description="AgentV: the threshold of the gate, over 0 and up to 1."
    )
    negate: bool = Field(default=False, description="Turns the score into 1 - score.")
    config: Data = Field(default={}, description="Passed on to the evaluator as it is.")

    origin: Computed[Origin] = "test"
    location: Computed[Location] = Location("")
    target_location: Computed[Location | None] = None
    files: Computed[tuple[NamedFile, ...]] = ()

    @model_validator(mode="after")
    def _check_gate(self) -> Self:
        problems: dict[Steps, str] = {}
        if self.negate and self.inner_gates():
            problems["negate",] = (
                "it has a gate inside, which cannot be negated; remove one of them"
            )
        is_threshold = self.required is not None and not isinstance(self.required, bool)
        if is_threshold and self.min_score not in (None, self.required):
            problems["min_score",] = "`required` is another threshold; keep one of them"
        if problems:
            raise errors_at(problems)
        return self

    @abstractmethod
    async def evaluate(self, case: Case) -> Score:
        """Scores one case; raises AttemptError if it could not be scored."""

    @property
    def gate_threshold(self) -> float | None:
        """The score (0-1) that it must reach as a gate, None when it is none."""
        if self.required is None or self.required is False:
            return None
        if self.required is True:
            return self.min_score if self.min_score is not None else REQUIRED_SCORE
        return self.required

    def own_fields(self, *, exclude_defaults: bool = False) -> dict[str, Any]:
        """The fields of its type as data, without other evaluators."""
        common = {*Evaluator.model_fields}
        return self.model_dump(exclude=common, exclude_defaults=exclude_defaults)

    def label(self) -> str:
        """The operand in a generated name (`contains-DENIED`): the field `value` by default."""
        value = getattr(self, "value", "")
        return value if isinstance(value, str) else "-".join(value)

    def warnings(self) -> Sequence[tuple[str, str, str]]:
        """Probable mistakes: the field, a phrase that follows its name, the advice."""
        if self.min_score is None or self.required:
            return ()
        return (("min_score", "without `required` is not a gate", "add `required: true`"),)

    def named_files(self, folder: Folder) -> Sequence[NamedFile]:  # noqa: ARG002  # for subclasses
        """Files that it names; their contents are part of the grading fingerprint."""
        return ()

    def missing_script(self) -> Path | None:
        """The program or script that it runs as a file and that does not exist."""
        return None

    def missing_program(self, root: Path) -> Diagnostic | None:
        """The error of that program in the repository at `root`."""
        script = self.missing_script()
        owner = f"the judge `{self.name}`"
        return missing_program(self.location, owner, script, root) if script else None

    def check(self, test: "Test") -> Sequence[Mismatch]:  # noqa: ARG002  # for subclasses
        """Reasons why it, not an evaluator inside it, does not fit a test."""
        return ()

    def needs_judge(self) -> bool:
        """Whether it needs a judge target."""
        return self.asks_judge

    def reads_criteria(self) -> bool:
        """Whether a model reads the test's `criteria` for its score."""
        return False

    def judge_name(self) -> str | None:
        """Name of the target that judges, if it names one."""
        return None

    def judge_temperature(self) -> float | None:
        """The temperature that the judge is asked with; None for the target's own."""
        return None

    def children(self) -> Sequence["Evaluator"]:
        """The evaluators directly inside this one, in suite order."""
        return ()

    def inner_gates(self) -> Sequence[tuple[str, Location | None]]:
        """Gates inside this evaluator: the name below it, and the location where it is known.

        An empty name is the evaluator itself, if it can fail the test without `required`."""
        return ()

    def gates(self, place: Location | None = None) -> Iterator[Gate]:
        """Its own gate, when it is one, and those inside it; annotations go to `place`, or to the
        entry of each."""
        if self.gate_threshold is not None:
            yield Gate(self.name, place or self.location)
        for inner, location in self.inner_gates():
            if inner or self.gate_threshold is None:
                yield Gate(gate_path(self.name, inner), place or location or self.location)

    def walk(self) -> Iterator["Evaluator"]:
        """This evaluator and all inside it, at any depth, in suite order."""
        yield self
        for child in self.children():
            yield from child.walk()


def gate_path(name: str, inner: str) -> str:
    """The name of a gate inside the evaluator `name`; the evaluator's own if `inner` is empty."""
    return f"{name}/{inner}" if inner else name


def with_own_names(evaluators: Iterable[Evaluator]) -> tuple[Evaluator, ...]:
    """Evaluators with a name each, made from type and value when missing; one that is taken gets a
    number."""
    named: dict[str, Evaluator] = {}
    for evaluator in evaluators:
        label = " ".join(evaluator.label().split())
        made = f"{evaluator.type}-{label}" if label else evaluator.type
        name = wanted = evaluator.name or made[:_GENERATED_NAME].rstrip()
        number = 1
        while name in named:
            number += 1
            name = f"{wanted}-{number}"
        is_written = name == evaluator.name
        named[name] = evaluator if is_written else evaluator.model_copy(update={"name": name})
    return tuple(named.values())


def type_key(name: Any) -> str:
    """A type's name for look-up: `-` and `_` are equal. Empty for what is no name."""
    return name.replace("-", "_") if isinstance(name, str) else ""


def _choose_type(data: Any, info: ValidationInfo) -> type[Evaluator]:
    """The type of evaluator that an object names: the discriminator of the union."""
    if isinstance(data, str):  # a judge's opinion must not replace an evaluator
        problem = f"`{data.strip()}` alone is the type of an evaluator and not a criterion"
        raise ValueError(f"{problem}; write an object with a `type`")
    if not isinstance(data, Mapping):
        raise expected("an object with a `type`")
    types, key = Evaluator.types, type_key(data.get("type"))
    if key in types:
        return types[key]
    known = join_choices(sorted({model.type for model in types.values()}))
    if "type" not in data:
        named = next((types[name].type for name in map(type_key, data) if name in types), None)
        if named is None:
            check_fields(Evaluator, data, info)
        advice = f"write `type: {named}`" if named else f"write one of {known}"
        raise ValueError(f"it has no `type`; {advice}")
    if not key:
        raise errors_at({("type",): expected(f"one of {known}")})
    problem, advice = "is unknown", did_you_mean(key, types, f"write one of {known}")
    if positive := types.get(key.removeprefix("not_")):
        problem = "of AgentV is not supported"
        advice = f"write `type: {positive.type}` with `negate: true`"
    raise errors_at({("type",): f"the evaluator type `{data['type']}` {problem}; {advice}"})


def _read_evaluator(value: Any, info: ValidationInfo) -> Evaluator:
    if isinstance(value, Evaluator):
        return value
    evaluator = _choose_type(value, info).model_validate(value, context=info.context)
    if isinstance(info.context, FileContext):
        info.context.warn_about(evaluator, value)
    try:
        files = tuple(evaluator.named_files(get_folder(info)))
    except (OSError, ValueError) as error:
        problem = f"one of its files cannot be used: {error}"
        raise ValueError(f"{problem}; name a file of the repository") from None
    return evaluator.model_copy(update={"files": files}) if files else evaluator


def _read_rubrics(value: Any, info: ValidationInfo) -> Evaluator | None:
    if isinstance(value, Evaluator):
        return value
    rubric = _read_evaluator({"type": "rubric", "name": "rubrics", "rubrics": value}, info)
    place = locate(info, value)
    return rubric.model_copy(update={"origin": "rubrics", "location": place or rubric.location})


#: The union of all types of evaluators by `type`. A type is built when a file has it.
AnyEvaluator = Annotated[Evaluator, PlainValidator(_read_evaluator)]
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


def _strip_blank(text: str | None) -> str | None:
    return text if text and text.strip() else None


class Test(FileModel):
    """One test, effective: the suite's messages and evaluators are already in it, in the order
    of docs/reference/suites.md."""

    __test__ = False  # pytest: not a test case
    noun = "test"

    id: NonEmpty = Field(description="Identifier of the test, unique in the suite.")
    input: Question = spelled(
        "input",
        "input_messages",
        description="The question to the agent: a text, an object, or messages.",
    )
    criteria: Annotated[str | None, AfterValidator(_strip_blank)] = spelled(
        "criteria",
        "expected_outcome",
        default=None,
        description="What makes an answer good, in words; for judges and readers.",
    )
    expected_output: Answer = spelled(
        "expected_output",
        "expected_messages",
        default=(),
        description="A reference answer: a text, an object, or messages.",
    )
    rubrics: Annotated[Evaluator | None, PlainValidator(_read_rubrics)] = Field(
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
    note: str | None = Field(default=None, description="Context for evaluators.")
    metadata: Data = Field(default={}, description="Anything; passed on to evaluators.")

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
    def skills(self) -> tuple[Skill, ...]:
        """The skills that are installed for its agent."""
        return self.workspace.installed if self.workspace else ()

    @property
    def gates(self) -> tuple[Gate, ...]:
        """Every gate declared for this test, in suite order."""
        return tuple(gate for each in self.evaluators for gate in self.list_gates(each))

    def list_gates(self, evaluator: Evaluator) -> Iterator[Gate]:
        """The gates of one of its evaluators; annotations about one of the suite's go to the
        test."""
        return evaluator.gates(self.location if evaluator.origin == "suite" else None)


class Suite(FileModel):
    """A suite of tests; one that is loaded has no errors.

    `path` is relative to the repository root `root`; `folder` is the absolute folder of its file.
    `files` are the files that the suite and its tests name, itself and its targets file included,
    each once. `used_targets` are the names of the targets that answer and judge its tests.

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

    places: Computed[Mapping[str, Location]] = Field(default={})
    path: Computed[str] = ""
    root: Computed[Path] = Path()
    folder: Computed[Path] = Path()
    targets: Computed[TargetTable] = Field(default_factory=TargetTable)
    files: Computed[tuple[NamedFile, ...]] = ()
    warnings: Computed[tuple[Diagnostic, ...]] = ()
    used_targets: Computed[tuple[str, ...]] = ()
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
        """The name of the runner of others that runs it, which knows its tests when it has run;
        empty if the action does."""
        return self.runner.name if self.runner else ""

    @property
    def entry(self) -> Mapping[str, Any] | None:
        """The entry of its runner, wherever that stands; None if the action runs it."""
        return self.runner.model_dump(exclude={"location"}) if self.runner else None

    @property
    def installs_skills(self) -> bool:
        """Whether the agent of all its tests finds skills in a folder that has no others."""
        return bool(self.tests) and all(test.skills for test in self.tests)

    def with_tests(self, tests: Iterable[Test]) -> "Suite":
        """The suite with these of its tests."""
        return self.model_copy(update={"tests": tuple(tests)})

    def choose_target(self, test: Test) -> str | None:
        """Name of the target that answers a test."""
        return self.targets.agent(test.target or self.default_target)

    def find_agent(self, test: Test) -> Target | None:
        """The target that answers a test; None if it is not declared."""
        return self.targets.get(self.choose_target(test))

    def judge_choice(self, evaluator: Evaluator, agent: Target | None) -> Choice:
        """Which target judges for an evaluator of an agent's answers, and why."""
        return self.targets.judge_choice(evaluator.judge_name(), agent)

    def find_judge(self, evaluator: Evaluator, agent: Target | None) -> Target | None:
        """The target that judges for an evaluator; None if it needs none, or it is not declared."""
        name = self.judge_choice(evaluator, agent).name
        return self.targets.get(name) if evaluator.needs_judge() else None

    def is_deterministic(self, test: Test) -> bool:
        """Whether the agent and all evaluators of a test give the same result each time, so that
        one sample is enough. A model does not, whatever its temperature; nor does a program that
        judges."""
        agent = self.find_agent(test)
        if agent is None or not agent.deterministic:
            return False
        return all(
            self._gives_same_score(inner, agent)
            for evaluator in test.evaluators
            for inner in evaluator.walk()
        )

    def _gives_same_score(self, evaluator: Evaluator, agent: Target) -> bool:
        if not evaluator.needs_judge():
            return evaluator.deterministic
        judge = self.find_judge(evaluator, agent)
        return evaluator.asks_judge and judge is not None and judge.deterministic


@dataclass(frozen=True)
class BrokenSuite:
    """A suite file that cannot be used: its errors, the files that it names as far as they could be
    read, and the valid targets that it sees."""

    path: str
    errors: tuple[Diagnostic, ...]
    files: tuple[NamedFile, ...] = ()
    targets: TargetTable = field(default_factory=TargetTable)
