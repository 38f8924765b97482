"""Variants: other arms of the tests of a suite, as files declare them."""

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from agentevals_action.model.diagnostic import Location
from agentevals_action.validation.file_model import (
    Computed,
    ComputedStored,
    FileModel,
    ListOf,
    NonEmpty,
    locate,
)

#: The name of the arm without the skill, which needs no other field.
WITHOUT_SKILL = "without_skill"


class Variant(FileModel):
    """An arm of the tests of a suite: another target answers them, or the same one without the
    skill. It runs on head alone, and the same judges score it by the same criteria."""

    noun = "variant"

    name: str = Field(
        pattern=r"^[A-Za-z0-9][\w.-]*$",  # a bound in it takes 20 ms and 12 MB to compile
        max_length=64,
        description="Name of the arm, unique in the suite; `without_skill` implies `skill: false`.",
    )
    target: NonEmpty | None = Field(
        default=None, description="The target that answers the tests in this arm."
    )
    skill: bool = Field(
        default=True, description="`false`: the agent of this arm finds no skill of the suite."
    )
    must: Literal["not-hurt", "help"] | None = Field(
        default=None,
        description="A condition that blocks. `not-hurt`: the suite as declared is not worse than "
        "this arm. `help`: it is better. Without it, the arm is shown and never blocks.",
    )
    location: ComputedStored[Location] = Location("")
    target_location: Computed[Location | None] = Field(default=None, exclude=True)

    @model_validator(mode="after")
    def _differs(self) -> "Variant":
        if self.name == WITHOUT_SKILL and "skill" not in self.model_fields_set:
            return self.model_copy(update={"skill": False})
        if self.skill and self.target is None:
            raise ValueError("it is the suite as declared; write `target` or `skill: false`")
        return self


def smallest_p(tests: int, declared: int, variant: int) -> float:
    """The smallest probability by which a comparison of two arms can show a difference, for `tests`
    tests with `declared` and `variant` samples in the two arms: all samples pass in one arm, and no
    sample in the other."""
    return float(math.comb(declared + variant, declared)) ** -tests


def _read_short_forms(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, list):
        return value
    return [
        Variant(name=entry, skill=False, location=locate(info, value, index) or Location(""))
        if entry == WITHOUT_SKILL
        else entry
        for index, entry in enumerate(value)
    ]


def _have_own_names(variants: tuple[Variant, ...]) -> tuple[Variant, ...]:
    names = [variant.name for variant in variants]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"`{twice}` is the name of several; give each its own")
    return variants


#: The variants of a suite.
Variants = Annotated[
    ListOf[Variant],
    BeforeValidator(
        _read_short_forms, json_schema_input_type=list[Literal["without_skill"] | Variant]
    ),
    AfterValidator(_have_own_names),
]
