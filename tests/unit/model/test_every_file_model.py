"""Any data in the fields of any model of a file is valid or invalid, and never valid where its JSON
Schema refuses it."""

import functools
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from pydantic import ValidationError

from agentevals_action import evaluators
from agentevals_action.evaluators.base import EvaluatorOptions
from agentevals_action.model.validation.field_errors import field_errors
from agentevals_action.model.validation.file_model import FileModel, fields_of, model_schema
from agentevals_action.suites import json_schema, targets_file
from agentevals_action.suites.models import messages, schema_models
from agentevals_action.system.files.paths import Folder
from agentevals_action.targets import providers
from agentevals_action.targets.base import ProviderOptions

WORDS = st.sampled_from(
    [
        *(
            "a",
            "",
            " ",
            "0.5",
            "exact",
            "any",
            "user",
            "text",
            "minimum",
            "safety_gate",
            "none",
            "fast",
            "shared",
            "suite",
            "chat",
            "POST",
        ),
        *(
            "function",
            "https://example.test/v1",
            "${{ KEY }}",
            "{PROMPT}",
            "{{ answer }}",
            "2027-01-01",
            "i",
            "(",
            "\0",
            "\ud800",
        ),
    ]
)
NUMBERS = st.sampled_from(
    [0, 1, -1, 2, 0.0, 1.0, 0.5, 1.5, -0.5, 3600, 10**25, 10**400, float("inf"), float("nan")]
)
NAMES = st.sampled_from(
    [
        *(
            "type",
            "weights",
            "required",
            "threshold",
            "outcome",
            "expected_outcome",
            "weight",
            "score_ranges",
            "0",
            "10",
            "path",
            "match",
        ),
        *(
            "tool",
            "args",
            "args_match",
            "command",
            "url",
            "max_calls",
            "name",
            "value",
            "role",
            "reset",
            "input",
            "output",
            "pattern",
        ),
        *(
            "response",
            "tests",
            "owner",
            "reason",
            "expires",
            "repo",
            "before_all",
            "target",
            "timeout_seconds",
            "",
        ),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(NAMES, inside, max_size=4),
    max_leaves=8,
)
HERE = Folder(Path("/nowhere"), Path("/nowhere/evals"))
#: Imported: the plug-ins, the models of a suite, of targets and of the quarantine.
REGISTRIES = (evaluators.EVALUATORS, providers.PROVIDERS, json_schema, targets_file)
#: Models with short forms that their JSON Schema leaves to that of the suite.
SHORT_FORMS = (messages.Message, schema_models.Test, schema_models.Suite)


def subclasses(model: type[FileModel]) -> Iterator[type[FileModel]]:
    for one in model.__subclasses__():
        yield one
        yield from subclasses(one)


MODELS = sorted(
    {
        model
        for model in subclasses(FileModel)
        if model.__module__.startswith("agentevals_action.")
        and not inspect.isabstract(model)
        and model not in SHORT_FORMS
    },
    key=lambda model: (model.__module__, model.__name__),
)


@functools.cache
def validator(model: type[FileModel]) -> Draft7Validator:
    definitions: dict[str, Any] = {}
    return Draft7Validator({**model_schema(model, definitions), "definitions": definitions})


def test_models__are_found() -> None:
    assert len(MODELS) > 50


@pytest.mark.slow
@settings(max_examples=1_000)
@given(model=st.sampled_from(MODELS), data=st.data())
def test_every_model__accepts_nothing_that_its_schema_refuses(
    model: type[FileModel], data: st.DataObject
) -> None:
    fields = data.draw(st.fixed_dictionaries({}, optional=dict.fromkeys(fields_of(model), VALUES)))
    try:
        valid = model.model_validate(fields, context=HERE)
    except ValidationError as error:
        assert field_errors(error, fields)  # noqa: PT017  # any outcome is allowed
        return
    assert list(validator(model).iter_errors(fields)) == []
    if isinstance(valid, EvaluatorOptions | ProviderOptions):
        dumped = valid.model_dump(exclude_defaults=True, by_alias=True)
        assert model.model_validate(dumped, context=HERE) == valid
