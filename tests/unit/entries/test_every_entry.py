"""Whatever stands in a field of any entry of the program: it is read or refused, never more than
its JSON Schema allows."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from agentevals_action import evaluators
from agentevals_action.entries.entry import Entry
from agentevals_action.entries.reading import entry_schema, fields_of, read_entry, to_data
from agentevals_action.suites import config, quarantine_file, targets_file, workspace_entries
from agentevals_action.suites.files.validation_errors import Refused
from agentevals_action.system.paths import Folder
from agentevals_action.targets import providers

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


def declared(kind: type[Entry]) -> Iterator[type[Entry]]:
    for model in kind.__subclasses__():
        yield model
        yield from declared(model)


#: What declares entries: looked up, each plug-in is imported.
DECLARING = (
    *evaluators.EVALUATORS_BY_NAME.values(),
    *providers.PROVIDERS.values(),
    config,
    quarantine_file,
    targets_file,
    workspace_entries,
)
ENTRIES = sorted(
    {
        model
        for model in declared(Entry)
        if model.__module__.startswith("agentevals_action.") and not inspect.isabstract(model)
    },
    key=lambda model: (model.__module__, model.__name__),
)


def validator(model: type[Entry]) -> Draft7Validator:
    definitions: dict[str, Any] = {}
    return Draft7Validator({**entry_schema(model, definitions), "definitions": definitions})


VALIDATORS = {model: validator(model) for model in ENTRIES}


@settings(max_examples=1_000)
@given(model=st.sampled_from(ENTRIES), data=st.data())
def test_every_entry__is_read_or_refused_and_takes_nothing_that_its_schema_refuses(
    model: type[Entry], data: st.DataObject
) -> None:
    fields = data.draw(st.fixed_dictionaries({}, optional=dict.fromkeys(fields_of(model), VALUES)))
    try:
        entry = read_entry(model, fields, HERE)
    except Refused:
        return
    assert read_entry(model, to_data(entry, defaults=False), HERE) == entry
    assert list(VALIDATORS[model].iter_errors(fields)) == []
