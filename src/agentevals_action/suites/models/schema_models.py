"""The models of a suite, its tests and what all evaluators have in common, by canonical names; the
JSON Schema is generated from them."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from agentevals_action.model.validation.file_model import (
    FileModel,
    ListOf,
    NonEmpty,
    Weight,
    expected,
)
from agentevals_action.suites.models.messages import Answer, Question
from agentevals_action.suites.models.workspace_models import Workspace

Seconds = Annotated[float, Field(ge=1, le=3600)]
#: The longest name that tables and titles of checks show completely.
MAX_NAME = 64

_NAME_PATTERN = r"^[a-z][a-z0-9]*(-+[a-z0-9]+)*$"


def _read_required(value: Any) -> Any:
    if value is None:
        raise ValueError("it is empty; write `true`, a number over 0 and up to 1, or leave it out")
    return value


def _read_workspace(value: Any) -> Any:
    if isinstance(value, str | dict | Workspace) and value != "":
        return value
    raise expected("an object, or the path of a YAML file that contains one")


#: A workspace, or the path of the file that contains it.
WorkspaceOrPath = Annotated[str | Workspace | None, BeforeValidator(_read_workspace)]


class SuiteExecution(FileModel):
    """Defaults for every test of the suite."""

    target: NonEmpty | None = Field(
        default=None,
        description="Name of the target (see .agentv/targets.yaml) that answers the tests.",
    )
    timeout_seconds: Seconds | None = Field(
        default=None, description="Time limit of each test in seconds, 1-3600."
    )


class TestExecution(SuiteExecution):
    """Overrides for one test."""

    __test__ = False  # pytest: not a test case

    skip_defaults: bool = Field(
        default=False, description="Leaves out the suite's evaluators and its input for this test."
    )


class Evaluator(FileModel):
    """The fields that all evaluators have in common; the others belong to the type."""

    type: NonEmpty = Field(description="The type of evaluator; `-` and `_` are equal in it.")
    name: NonEmpty | None = Field(
        default=None,
        description="Shown in results and gates; made from type and value when missing.",
    )
    weight: Weight = Field(default=1.0, description="Weight in the test's score, 0 to 1,000,000.")
    required: Annotated[
        bool | Annotated[float, Field(gt=0, le=1)] | None, BeforeValidator(_read_required)
    ] = Field(
        default=None,
        description="Makes it a gate that fails the test: true (0.8 must be reached) or the score "
        "that must be reached.",
    )
    min_score: Annotated[float, Field(gt=0, le=1)] | None = Field(
        default=None, description="AgentV: the threshold of the gate, over 0 and up to 1."
    )
    negate: bool = Field(default=False, description="Turns the score into 1 - score.")
    config: dict[str, Any] | None = Field(
        default=None, description="Passed on to the evaluator as it is."
    )
    target: NonEmpty | None = Field(default=None, description="Name of the target that judges.")


class Test(FileModel):
    """One test; its evaluators and rubrics are read by type."""

    __test__ = False  # pytest: not a test case

    id: NonEmpty = Field(description="Identifier of the test, unique in the suite.")
    input: Question = Field(
        description="The question to the agent: a text, an object, or messages."
    )
    criteria: str | None = Field(
        default=None, description="What makes an answer good, in words; for judges and readers."
    )
    expected_output: Answer = Field(
        default=(), description="A reference answer: a text, an object, or messages."
    )
    rubrics: Any = Field(
        default=None,
        description="Criteria that a judge checks one by one: texts, or objects with id, outcome, "
        "weight, required.",
    )
    workspace: WorkspaceOrPath = Field(
        default=None,
        description="The folder that the agent works in: its fields replace the suite's, one by "
        "one.",
    )
    execution: TestExecution = Field(
        default=TestExecution(), description="Overrides for this test."
    )
    input_files: ListOf[NonEmpty] = Field(
        default=(), description="Files that precede the `input`, which must be a text."
    )
    vars: dict[str, Any] | None = Field(
        default=None,
        description="Variables for `{{ name }}` in `input`, `criteria` and `expected_output`.",
    )
    description: str | None = Field(default=None, description="For readers.")
    conversation_id: str | None = Field(
        default=None, description="Groups tests of one conversation."
    )
    note: str | None = Field(default=None, description="Context for evaluators.")
    metadata: dict[str, Any] | None = Field(
        default=None, description="Anything; passed on to evaluators."
    )


class Suite(FileModel):
    """The root of a suite; its tests may be in other files, its evaluators are read by type."""

    name: Annotated[
        Annotated[str, Field(min_length=2, max_length=MAX_NAME)] | None,
        Field(json_schema_extra={"pattern": _NAME_PATTERN}),
    ] = Field(
        default=None,
        description="Name of the suite: lower case letters, digits and single hyphens, 2-64 "
        "characters.",
    )
    version: str | float | None = Field(default=None, description='Version of the format, "1.0".')
    description: Annotated[str, Field(max_length=2048)] | None = Field(
        default=None, description="For readers, up to 2048 characters."
    )
    metadata: dict[str, Any] | None = Field(
        default=None, description="Anything; author, license, tags and skill are known names."
    )
    target: NonEmpty | None = Field(
        default=None, description="AgentV: the same as `execution.target`."
    )
    execution: SuiteExecution = Field(
        default=SuiteExecution(), description="Defaults for every test."
    )
    input: Question = Field(
        default=(), description="Messages that precede the messages of every test."
    )
    input_files: ListOf[NonEmpty] = Field(
        default=(), description="Files that precede the `input` of every test."
    )
    workspace: WorkspaceOrPath = Field(
        default=None,
        description="The folder that the agent works in, or the path of a YAML file that describes "
        "it.",
    )
    tests: Any = Field(
        default=None,
        description="The tests: a list of tests and paths, or one path: of a YAML or JSONL file, "
        "or a glob of such files.",
    )

    @field_validator("name")
    @classmethod
    def _is_slug(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(_NAME_PATTERN, value):
            raise ValueError(
                f"{value!r} is not a valid name; write lower case letters, digits and hyphens, a "
                "letter first, as `code-review`"
            )
        return value
