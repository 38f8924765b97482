"""An evaluator, what it reads of a test, and how an entry of a file becomes an evaluator."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    ValidationInfo,
    model_validator,
)

from agentevals_action.formatting import join_choices
from agentevals_action.model.diagnostic import Diagnostic, Location, NamedFile, missing_program
from agentevals_action.model.messages import Answer, Message, Question
from agentevals_action.model.result import JudgeRecord, Score
from agentevals_action.model.trace import Trace
from agentevals_action.system.files.paths import Folder
from agentevals_action.system.program import Program
from agentevals_action.system.registry import Registry
from agentevals_action.validation.field_errors import did_you_mean
from agentevals_action.validation.file_model import (
    Computed,
    FileContext,
    FileModel,
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

#: The score that an evaluator with `required: true` must reach.
REQUIRED_SCORE = 0.8

#: Characters of the name of an evaluator that is generated from type and value.
_GENERATED_NAME = 40


def _empty_if_none(value: Any) -> Any:
    return {} if value is None else value


#: Data that the user defines.
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


def _strip_blank(text: str | None) -> str | None:
    return text if text and text.strip() else None


class Task(FileModel):
    """What a test asks, and what makes an answer good: all of it that an evaluator reads."""

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
    note: str | None = Field(default=None, description="Context for evaluators.")
    metadata: Data = Field(default={}, description="Anything; passed on to evaluators.")


#: Sends messages to a judge of the evaluator and returns its reply; `model` is known: the name of
#: the target if the reply gives none. The number is that of the judgement, from 0: the judges are
#: asked in turn. Raises AttemptError of kind `judge` or `timeout`.
Ask = Callable[["Evaluator", Sequence[Message], int], Awaitable[Trace]]


@dataclass(frozen=True)
class Judges:
    """The targets that the program of a code judge may call.

    `default` is the name of the evaluator's judge, `names` are all targets of the suite. `ask`
    sends messages to a target; AttemptError if it does not answer. The test pays for the calls.
    """

    default: str
    names: tuple[str, ...]
    ask: Callable[[str, Sequence[Message]], Awaitable[Trace]]


@dataclass(frozen=True)
class Case:
    """One answer, and the context in which it is scored.

    `evaluators` are the evaluators of the test, `root` is the repository root of the tree under
    test, `timeout` the test's limit in seconds. `program` returns the program of a judge for its
    words, its folder in `root`, and variables that it sees besides its environment. `workspace` is
    the folder in which the agent worked and `file_changes` the unified diff of its changes; both
    are None without a workspace. `judges` returns the targets that a program may call for an
    evaluator; AttemptError of kind `configuration` if there is no judge. `judge_path` returns the
    path from which a judge runs for a path in `root`. `judge_key` identifies the way of judging of
    an evaluator that asks a judge. `notice` receives a sentence for the reader of the report.
    `rival` is the case of base's answer, if head's answer is compared with it. `why_advisory`
    returns why a judge decides nothing, empty for a judge that decides."""

    test: Task
    evaluators: Sequence["Evaluator"]
    trace: Trace
    root: Path
    timeout: float
    program: Callable[[Sequence[str], Path, Mapping[str, str]], Program]
    ask: Ask
    judges: Callable[["Evaluator"], Judges]
    judge_key: Callable[["Evaluator"], str]
    notice: Callable[[str], None]
    workspace: Path | None = None
    file_changes: str | None = None
    judge_path: Callable[[Path], Path] = lambda path: path
    rival: "Case | None" = None
    why_advisory: Callable[[JudgeRecord], str] = lambda _judge: ""


def _read_required(value: Any) -> Any:
    if value is None:
        raise ValueError("it is empty; write `true`, a number over 0 and up to 1, or leave it out")
    return value


class Evaluator(FileModel):
    """One evaluator: the fields that all types have in common.

    Each type is a subclass, which adds its own fields and implements `evaluate`. In its name, `-`
    and `_` are equal. `deterministic` types give the same score for the same answer. With
    `asks_judge`, the field `target` names a judge; with `runs_programs`, it runs a program of the
    repository. With `passes_fields`, unknown fields are part of `config`. An evaluator that
    `compares` gives no score to an answer: it compares head's answer with base's.

    `location` is where its entry is, `target_locations` are where its judges' names are. `files`
    are the files that it names."""

    noun = "evaluator"

    #: All types by their names.
    types: ClassVar[Registry[type["Evaluator"]]] = Registry("", {})

    type: ClassVar[str]
    deterministic: ClassVar[bool] = True
    asks_judge: ClassVar[bool] = False
    runs_programs: ClassVar[bool] = False
    passes_fields: ClassVar[bool] = False
    compares: ClassVar[bool] = False

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
    target_locations: Computed[tuple[Location, ...]] = ()
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
        """The score (0-1) that it must reach as a gate, None if it is no gate."""
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

    def check(self, test: Task) -> Sequence[Mismatch]:  # noqa: ARG002  # for subclasses
        """Reasons why it, not an evaluator inside it, does not fit a test."""
        return ()

    def needs_judge(self) -> bool:
        """Whether it needs a judge target."""
        return self.asks_judge

    def reads_criteria(self) -> bool:
        """Whether a model reads the test's `criteria` for its score."""
        return False

    def judge_names(self) -> Sequence[str]:
        """Names of the targets that judge, if it names them."""
        return ()

    def judge_temperature(self) -> float | None:
        """The temperature that the judge is asked with; None for the target's own."""
        return None

    def judging(self) -> Mapping[str, Any]:
        """How it judges, as data, without what a single test asks of it."""
        return self.own_fields()

    def expected_tools(self) -> Collection[str]:
        """The names of the tools of which it expects calls."""
        return ()

    def children(self) -> Sequence["Evaluator"]:
        """The evaluators directly inside this one, in suite order."""
        return ()

    def inner_gates(self) -> Sequence[tuple[str, Location | None]]:
        """Gates inside this evaluator: the name below it, and the location where it is known.

        An empty name is the evaluator itself, if it can fail the test without `required`."""
        return ()

    def gates(self, place: Location | None = None) -> Iterator[Gate]:
        """Its own gate, if it is a gate, and the gates inside it; annotations go to `place`, or to
        the entry of each gate."""
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


def evaluators_by_path(evaluators: Iterable[Evaluator], above: str = "") -> dict[str, Evaluator]:
    """Evaluators and all inside them by their paths in results (`composite/child`), in suite
    order."""
    by_path: dict[str, Evaluator] = {}
    for evaluator in evaluators:
        path = f"{above}{evaluator.name}"
        by_path |= {path: evaluator, **evaluators_by_path(evaluator.children(), f"{path}/")}
    return by_path


def gate_path(name: str, inner: str) -> str:
    """The name of a gate inside the evaluator `name`; the evaluator's own if `inner` is empty."""
    return f"{name}/{inner}" if inner else name


def with_own_names(evaluators: Iterable[Evaluator]) -> tuple[Evaluator, ...]:
    """Evaluators with a name each, generated from type and value if missing; a name that is taken
    gets a number."""
    named: dict[str, Evaluator] = {}
    for evaluator in evaluators:
        label = " ".join(evaluator.label().split())
        generated = f"{evaluator.type}-{label}" if label else evaluator.type
        name = wanted = evaluator.name or generated[:_GENERATED_NAME].rstrip()
        number = 1
        while name in named:
            number += 1
            name = f"{wanted}-{number}"
        is_written = name == evaluator.name
        named[name] = evaluator if is_written else evaluator.model_copy(update={"name": name})
    return tuple(named.values())


def _choose_type(data: Any, info: ValidationInfo) -> type[Evaluator]:
    """The type of evaluator that an object names: the discriminator of the union."""
    if isinstance(data, str):  # a judge's opinion must not replace an evaluator
        problem = f"`{data.strip()}` alone is the type of an evaluator and not a criterion"
        raise ValueError(f"{problem}; write an object with a `type`")
    if not isinstance(data, Mapping):
        raise expected("an object with a `type`")
    types, key = Evaluator.types, Registry.key(data.get("type"))
    if key in types:
        return types[key]
    names = join_choices(sorted(types))
    if "type" not in data:
        named = next((types[name].type for name in data if name in types), None)
        if named is None:
            check_fields(Evaluator, data, info)
        advice = f"write `type: {named}`" if named else f"write one of {names}"
        raise ValueError(f"it has no `type`; {advice}")
    if not key:
        raise errors_at({("type",): expected(f"one of {names}")})
    problem, advice = "is unknown", did_you_mean(key, types.all_spellings, f"write one of {names}")
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
Rubrics = Annotated[Evaluator, PlainValidator(_read_rubrics)]
