"""The models of a suite, its tests and what all evaluators have in common, by canonical names; the
JSON Schema is generated from them."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from agentevals_action.model.file_model import FileModel, NonEmpty, expected
from agentevals_action.suites.messages import Answer, Question
from agentevals_action.suites.workspace_models import Workspace

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

    target: Annotated[
        NonEmpty | None,
        Field(description="Name of the target (see .agentv/targets.yaml) that answers the tests."),
    ] = None
    timeout_seconds: Annotated[
        Seconds | None, Field(description="Time limit of each test in seconds, 1-3600.")
    ] = None


class TestExecution(SuiteExecution):
    """Overrides for one test."""

    __test__ = False  # pytest: not a test case

    skip_defaults: Annotated[
        bool, Field(description="Leaves out the suite's evaluators and its input for this test.")
    ] = False


class Evaluator(FileModel):
    """The fields that all evaluators have in common; the others belong to the type."""

    type: Annotated[
        NonEmpty, Field(description="The type of evaluator; `-` and `_` are equal in it.")
    ]
    name: Annotated[
        NonEmpty | None,
        Field(description="Shown in results and gates; made from type and value when missing."),
    ] = None
    weight: Annotated[float, Field(ge=0, description="Weight in the test's score, 0 or more.")] = (
        1.0
    )
    required: Annotated[
        Annotated[
            bool | Annotated[float, Field(gt=0, le=1)] | None, BeforeValidator(_read_required)
        ],
        Field(
            description="Makes it a gate that fails the test: true (0.8 must be reached) or the "
            "score that must be reached."
        ),
    ] = None
    min_score: Annotated[
        Annotated[float, Field(gt=0, le=1)] | None,
        Field(description="AgentV: the threshold of the gate, over 0 and up to 1."),
    ] = None
    negate: Annotated[bool, Field(description="Turns the score into 1 - score.")] = False
    config: Annotated[
        dict[str, Any] | None, Field(description="Passed on to the evaluator as it is.")
    ] = None
    target: Annotated[NonEmpty | None, Field(description="Name of the target that judges.")] = None


class Test(FileModel):
    """One test; its evaluators and rubrics are read by type."""

    __test__ = False  # pytest: not a test case

    id: Annotated[NonEmpty, Field(description="Identifier of the test, unique in the suite.")]
    input: Annotated[
        Question, Field(description="The question to the agent: a text, an object, or messages.")
    ]
    criteria: Annotated[
        str | None,
        Field(description="What makes an answer good, in words; for judges and readers."),
    ] = None
    expected_output: Annotated[
        Answer, Field(description="A reference answer: a text, an object, or messages.")
    ] = ()
    rubrics: Annotated[
        Any,
        Field(
            description="Criteria that a judge checks one by one: texts, or objects with id, "
            "outcome, weight, required."
        ),
    ] = None
    workspace: Annotated[
        WorkspaceOrPath,
        Field(
            description="The folder that the agent works in: its fields replace the suite's, one "
            "by one."
        ),
    ] = None
    execution: Annotated[TestExecution, Field(description="Overrides for this test.")] = (
        TestExecution()
    )
    description: Annotated[str | None, Field(description="For readers.")] = None
    conversation_id: Annotated[
        str | None, Field(description="Groups tests of one conversation.")
    ] = None
    note: Annotated[str | None, Field(description="Context for evaluators.")] = None
    metadata: Annotated[
        dict[str, Any] | None, Field(description="Anything; passed on to evaluators.")
    ] = None


class Suite(FileModel):
    """The root of a suite; its tests may be in other files, its evaluators are read by type."""

    name: Annotated[
        Annotated[str, Field(min_length=2, max_length=MAX_NAME)] | None,
        Field(
            description="Name of the suite: lower case letters, digits and single hyphens, 2-64 "
            "characters.",
            json_schema_extra={"pattern": _NAME_PATTERN},
        ),
    ] = None
    version: Annotated[str | float | None, Field(description='Version of the format, "1.0".')] = (
        None
    )
    description: Annotated[
        Annotated[str, Field(max_length=2048)] | None,
        Field(description="For readers, up to 2048 characters."),
    ] = None
    metadata: Annotated[
        dict[str, Any] | None,
        Field(description="Anything; author, license, tags and skill are known names."),
    ] = None
    execution: Annotated[SuiteExecution, Field(description="Defaults for every test.")] = (
        SuiteExecution()
    )
    input: Annotated[
        Question, Field(description="Messages that precede the messages of every test.")
    ] = ()
    workspace: Annotated[
        WorkspaceOrPath,
        Field(
            description="The folder that the agent works in, or the path of a YAML file that "
            "describes it."
        ),
    ] = None
    tests: Annotated[
        Any,
        Field(
            description="The tests: a list of tests and paths, or the path of a YAML or JSONL file."
        ),
    ] = None

    @field_validator("name")
    @classmethod
    def _is_slug(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(_NAME_PATTERN, value):
            raise ValueError(
                f"{value!r} is not a valid name; write lower case letters, digits and hyphens, a "
                "letter first, as `code-review`"
            )
        return value
