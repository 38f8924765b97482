"""A runner: a program of others that runs suites of its own format, as `.agentevals.yaml` declares
it."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

import regex
from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from agentevals_action.model.diagnostic import Location
from agentevals_action.model.path_patterns import selected_name
from agentevals_action.model.quarantine import FILE, Globs
from agentevals_action.validation.file_model import (
    Computed,
    FileModel,
    ListOf,
    NonEmpty,
    expected,
    spelled,
)

#: Words by which a user means true or false.
_TRUTH = re.compile(r"yes|no|on|off|true|false|all|none", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class PassRule(FileModel):
    """What passes where a runner has scores without a verdict."""

    noun = "`pass`"

    scorer: NonEmpty = Field(description="Name of the score that decides.")
    key: NonEmpty | None = Field(default=None, description="The key in a score that is an object.")
    at_least: float = Field(description="The lowest value that passes.")


def _read_required(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, bool):
        return ["*"] if value else []
    if info.context is None:
        return value
    if not value or not isinstance(value, str | list) or _TRUTH.fullmatch(str(value)):
        raise expected("true, or globs over test ids")
    return [value] if isinstance(value, str) else value


class Runner(FileModel):
    """One entry of `runners`.

    `results` is the name of a format. `command` and `again` are lists of words with placeholders;
    the format has default words. `required` are globs over the ids of tests that are gates; `!glob`
    excludes, and the last glob that matches decides. `location` is where the entry is, `places` are
    where the values of its fields are."""

    noun = "runner"

    name: NonEmpty = Field(description="Shown with the suites of this runner.")
    results: NonEmpty = Field(
        description="The format of its results: promptfoo, junit, inspect, agentv, claude or "
        "agentevals."
    )
    suites: Globs = Field(description="Globs of its suite files; `!glob` excludes.")
    program: NonEmpty | None = Field(
        default=None,
        description="The program, if the default commands need another one: `npx promptfoo`.",
    )
    command: ListOf[NonEmpty] = Field(
        default=(),
        description="The first run as a list of words, with {SUITE}, {SAMPLES} and {RESULTS}.",
    )
    again: ListOf[NonEmpty] = Field(
        default=(),
        description="The run of the tests in {SELECTION} again; all tests run again without it.",
    )
    env: ListOf[NonEmpty] = Field(
        default=(),
        description="Names of the variables that it needs; the input `env` must name them, too.",
    )
    required: Annotated[
        ListOf[NonEmpty],
        BeforeValidator(
            _read_required,
            json_schema_input_type=bool | NonEmpty | Annotated[list[NonEmpty], Field(min_length=1)],
        ),
    ] = Field(
        default=(), description="The tests that are gates: true for all, or globs over their ids."
    )
    errors: NonEmpty | None = Field(
        default=None,
        max_length=50_000,  # of a pattern of a test, too
        description="A regular expression: a failure whose message matches it is an outage, not a "
        "failure of the agent.",
    )
    passes: PassRule | None = spelled(
        "pass",
        serialization_alias="pass",
        default=None,
        description="inspect: the score that passes.",
    )
    timeout_seconds: Annotated[float, Field(ge=1, le=21_600)] = Field(
        default=1800.0, description="Time limit of each start in seconds, 1-21,600."
    )

    location: Computed[Location] = Location(FILE)
    places: Computed[Mapping[str, Location]] = Field(default={}, exclude=True)

    @field_validator("env")
    @classmethod
    def _are_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not _VARIABLE.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of a variable; write only its name")
        return value

    @field_validator("errors")
    @classmethod
    def _is_expression(cls, value: str | None) -> str | None:
        try:
            regex.compile(value or "")
        except (regex.error, RecursionError) as error:
            raise ValueError(f"{value!r} is not a regular expression: {error}") from None
        return value

    def requires(self, test: str) -> bool:
        """Whether a test is a gate, by its id."""
        return selected_name(test, self.required)
