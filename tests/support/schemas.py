"""The published schemas of what the program writes."""

from typing import Any

from jsonschema import Draft7Validator, FormatChecker

from agentevals_action.cli.commands.schema import SCHEMAS


def closed_validator(name: str) -> Any:
    """A validator by a schema that also refuses fields which it does not have: the schema allows
    them, for later versions."""
    schema = SCHEMAS[name]()
    for made in (schema, *schema["definitions"].values()):
        if "properties" in made:
            made["additionalProperties"] = False
    return Draft7Validator(schema, format_checker=FormatChecker())
