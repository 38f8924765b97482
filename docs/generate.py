"""Writes the generated parts of the documentation: `python docs/generate.py`.

A page has them between `<!-- generated: NAME -->` and `<!-- end -->`; `PARTS` has a function for
each name. The tests compare the pages with what this module generates."""

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import click
import yaml

from agentevals_action import evaluators, settings
from agentevals_action.cli.app import app
from agentevals_action.cli.commands.schema import SCHEMAS
from agentevals_action.model.evaluator import Evaluator
from agentevals_action.model.suite import Suite, Test
from agentevals_action.model.target import Target
from agentevals_action.model.tools import Command, Tool, ToolFile, ToolList, ToolServer
from agentevals_action.model.variant import Variant
from agentevals_action.runners.formats.agentevals import ResultLine
from agentevals_action.suites.configuration_file import Configuration
from agentevals_action.suites.json_schema import configuration_schema, suite_schema
from agentevals_action.targets.registry import PROVIDERS
from agentevals_action.validation.file_model import FileModel, list_fields

DOCS = Path(__file__).parent
_ROOT = DOCS.parent
_SOURCE = _ROOT / "src" / "agentevals_action"
_PART = re.compile(r"(<!-- generated: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)
_IMPORT = re.compile(r"^from agentevals_action\.(\w+)", re.MULTILINE)
_WIDTH = 114
_SHORT_NAMES = {"string": "text", "boolean": "true or false", "array": "list"}
_EVALUATORS = {
    "evaluators": "The evaluators: objects, or plain strings, which together make one rubric."
}


def complete(page: str) -> str:
    """The page with its generated parts as they are now."""
    return _PART.sub(lambda found: f"{found[1]}\n{PARTS[found[2]]()}\n{found[3]}", page)


def _wrapped(text: str, indent: str = "") -> str:
    lines = textwrap.wrap(
        text, _WIDTH, break_long_words=False, break_on_hyphens=False, subsequent_indent=indent
    )
    return "\n".join(lines)


def _list(items: Iterable[str]) -> str:
    return "\n".join(_wrapped(f"- {item}", "  ") for item in items) + "\n"


def _inputs() -> str:
    def items() -> Iterator[str]:
        for name, described in settings.INPUTS.items():
            default = f" Default: `{described.default}`." if described.default else ""
            yield f"`{name}`: {described.description}{default}"

    return _list(items())


def _outputs() -> str:
    action = yaml.safe_load((_ROOT / "action.yml").read_text(encoding="utf-8"))
    return _list(f"`{name}`: {output['description']}" for name, output in action["outputs"].items())


def _kind(schema: Mapping[str, Any]) -> str:
    """What a value is, in words."""
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " or ".join(f"`{value}`" for value in values)
    if "$ref" in schema:
        return "object"
    choices = [
        _kind(choice) for key in ("anyOf", "oneOf", "allOf") for choice in schema.get(key, ())
    ]
    if choices:
        return " or ".join(dict.fromkeys(filter(None, choices)))
    types = schema.get("type", "")
    names = [types] if isinstance(types, str) else types
    return " or ".join(_SHORT_NAMES.get(name, name) for name in names if name != "null")


def _fields(
    model: Any,
    schema: Mapping[str, Any],
    without: Collection[str] = (),
    definitions: Mapping[str, Any] | None = None,
) -> str:
    """The fields of an object, each with its other spellings, and those of the objects in them
    if `definitions` has them."""
    lines = []
    for name, spellings in list_fields(model).items():
        if name not in schema["properties"] or name in without:
            continue
        field = schema["properties"][name]
        facts = [_kind(field)] if name not in _EVALUATORS else []
        if name in schema.get("required", ()):
            facts.append("required")
        if others := [f"`{other}`" for other in spellings if other != name]:
            facts.append(f"also {', '.join(others)}")
        if field.get("default") not in (None, "", False, []):
            facts.append(f"default `{field['default']}`")
        about = f" ({'; '.join(filter(None, facts))})" if any(facts) else ""
        description = field.get("description") or _EVALUATORS.get(name, "")
        lines.append(_wrapped(f"- `{name}`{about}: {description}".rstrip(": "), "  "))
        objects = str(field) if name not in _EVALUATORS else ""
        for item in re.findall(r"'\$ref': '#/[$\w]+/(\w+)'", objects):
            if definitions and item in definitions:
                inner = _fields(_model_named(item), definitions[item], (), definitions)
                lines += [f"  {line}" for line in inner.splitlines()]
    return "\n".join(lines) + "\n"


def _model_named(name: str) -> type[FileModel]:
    found = [FileModel]
    for model in found:
        found += model.__subclasses__()
    return next(model for model in found if model.__name__ == name)


def _also(names: Iterable[str]) -> str:
    listed = ", ".join(f"`{name}`" for name in names)
    return f" Also written {listed}." if listed else ""


def _first_paragraph(model: type[object]) -> str:
    return " ".join((model.__doc__ or "").partition("\n\n")[0].split())


def examples() -> Mapping[str, Mapping[str, Any]]:
    """The fields of an example of each type of evaluator, without the type."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(
        (DOCS / "evaluators.yaml").read_text(encoding="utf-8")
    )
    return found


def _evaluators() -> str:
    definitions = suite_schema()["definitions"]
    sections = []
    for name, model in evaluators.EVALUATORS.items():
        aliases = evaluators.EVALUATORS.spellings(name)[1:]
        text = _wrapped(f"{_first_paragraph(model)}{_also(aliases)}")
        example = yaml.safe_dump({"type": name, **examples()[name]}, sort_keys=False, width=100)
        fields = _fields(model, definitions[name], (), definitions)
        sections.append(f"### {name}\n\n{text}\n\n```yaml\n{example}```\n\n{fields}")
    return "\n".join(sections)


def _targets() -> str:
    sections = []
    for name, model in PROVIDERS.items():
        aliases = [alias.replace("_", "-") for alias in PROVIDERS.spellings(name)[1:]]
        text = _wrapped(f"{_first_paragraph(model)}{_also(aliases)}")
        schema = model.model_json_schema()
        fields = _fields(model, schema, list_fields(Target), schema.get("$defs"))
        sections.append(f"### {model.provider}\n\n{text}\n\n{fields}")
    return "\n".join(sections)


def _tools() -> str:
    definitions = suite_schema()["definitions"]
    return "\n".join(
        f"{_wrapped(_first_paragraph(model))}\n\n"
        f"{_fields(model, definitions[model.__name__], (), definitions)}"
        for model in (Tool, ToolList, ToolServer, ToolFile, Command)
    )


def _each_command(group: click.Group, above: str = "") -> Iterator[tuple[str, click.Command]]:
    """The commands of a group with their names, those of groups inside it too."""
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = cast(click.Command, group.get_command(context, name))
            yield f"{above}{name}", command
            if isinstance(command, click.Group):
                yield from _each_command(command, f"{above}{name} ")


def _commands() -> str:
    sections = []
    for name, command in _each_command(app):
        own, inputs = [], []
        for parameter in command.params:
            if not isinstance(parameter, click.Option):
                continue
            flag = parameter.opts[-1]
            if flag.removeprefix("--") in settings.INPUTS:
                inputs.append(f"`{flag}`")
            else:
                own.append(f"`{flag}`: {parameter.help}")
        text = _wrapped(" ".join((command.help or "").split()))
        section = f"### {name}\n\n{text}\n"
        if own:
            section += f"\n{_list(own)}"
        if inputs:
            given = _wrapped(f"Inputs as options: {', '.join(inputs)}.")
            section += f"\n{given}\n"
        sections.append(section)
    return "\n".join(sections)


def _architecture() -> str:
    """The packages, each with those that it imports and that no other one of these imports."""
    packages = {path.parent.name for path in _SOURCE.glob("*/__init__.py")}
    imports: dict[str, set[str]] = {}
    for package in packages:
        texts = (path.read_text(encoding="utf-8") for path in (_SOURCE / package).rglob("*.py"))
        named = {name for text in texts for name in _IMPORT.findall(text)}
        imports[package] = (named & packages) - {package}

    def reached(package: str) -> set[str]:
        return imports[package].union(*map(reached, imports[package]))

    lines = ["```mermaid", "flowchart TD"]
    for package in sorted(packages):
        indirect = {name for other in imports[package] for name in reached(other)}
        lines += [f"  {package} --> {name}" for name in sorted(imports[package] - indirect)]
    return "\n".join([*lines, "```", ""])


#: The generated parts by name.
PARTS: Mapping[str, Callable[[], str]] = {
    "architecture": _architecture,
    "inputs": _inputs,
    "outputs": _outputs,
    "suite": lambda: _fields(Suite, suite_schema()),
    "variant": lambda: _fields(Variant, suite_schema()["definitions"]["Variant"]),
    "test": lambda: _fields(Test, suite_schema()["definitions"]["Test"]),
    "evaluator": lambda: _fields(Evaluator, suite_schema()["definitions"]["Evaluator"], ["type"]),
    "evaluators": _evaluators,
    "targets": _targets,
    "commands": _commands,
    "tools": _tools,
    "own-results": lambda: _fields(ResultLine, SCHEMAS["own-results"]()),
    "configuration": lambda: _fields(
        Configuration, configuration_schema(), (), configuration_schema()["definitions"]
    ),
}


def main() -> None:
    """Rewrites the pages whose generated parts are old."""
    for path in (_ROOT / "ARCHITECTURE.md", *sorted(DOCS.rglob("*.md"))):
        page = path.read_text(encoding="utf-8")
        if (made := complete(page)) != page:
            path.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
