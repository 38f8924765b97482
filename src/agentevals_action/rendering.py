"""The one sandboxed Jinja environment: reports and judge prompts (the only owner of jinja2)."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import BaseLoader, ChoiceLoader, DictLoader, FileSystemLoader, StrictUndefined, TemplateError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from agentevals_action import resources
from agentevals_action.errors import InvalidInput

_CUSTOM = "the custom template"
#: What a template that somebody else wrote can end in.
_TEMPLATE_ERRORS = (TemplateError, OSError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError, MemoryError)
_FENCE = re.compile("`{3,}|~{3,}")


def _environment(loader: BaseLoader | None) -> ImmutableSandboxedEnvironment:
    # No autoescape: the texts are Markdown and prompts; what is untrusted is escaped where the view is made.
    return ImmutableSandboxedEnvironment(
        loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False
    )


@cache
def _prompts() -> ImmutableSandboxedEnvironment:
    # A prompt is a text with variables: blank lines and indentation stay as they were written.
    environment = _environment(FileSystemLoader(resources.folder("templates") / "judges"))
    environment.trim_blocks = environment.lstrip_blocks = False
    environment.finalize = _as_text
    return environment


def _as_text(value: Any) -> Any:
    """What `{{ value }}` prints in a prompt: data as JSON, nothing for null."""
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list | tuple | bool) else value


def unknown_variables(text: str, known: frozenset[str]) -> tuple[str, ...]:
    """Names that a prompt uses and nobody gives it, in alphabetical order; ValueError when it is no valid template."""
    try:
        used = meta.find_undeclared_variables(_prompts().parse(text))
    except TemplateError as error:
        raise ValueError(f"the prompt is no valid template: {error}") from None
    return tuple(sorted(used - known))


def render_prompt(text: str, variables: Mapping[str, Any]) -> str:
    """A judge's prompt with its variables filled in; ValueError when it cannot be rendered."""
    try:
        return _prompts().from_string(text).render(variables)
    except (TemplateError, TypeError, ArithmeticError, OverflowError) as error:
        raise ValueError(f"the prompt cannot be rendered: {error}") from None


def builtin_prompt(name: str, variables: Mapping[str, Any]) -> str:
    """A packaged prompt of `templates/judges` (`llm_judge.md.j2`), filled in."""
    return _prompts().get_template(name).render(variables)


def render_report(name: str, context: Mapping[str, Any], custom: Path | None = None) -> str:
    """A packaged report template, or `custom`, which extends it (`{% extends "comment.md.j2" %}`); InvalidInput when that fails.

    Runs of empty lines outside fenced blocks come out as one, so that a template may be laid out to be read.
    """
    loaders: list[BaseLoader] = [FileSystemLoader(resources.folder("templates"))]
    if custom is None:
        return _tidy(_environment(ChoiceLoader(loaders)).get_template(name).render(context))
    try:
        loaders.insert(0, DictLoader({_CUSTOM: custom.read_text(encoding="utf-8")}))
        return _tidy(_environment(ChoiceLoader(loaders)).get_template(_CUSTOM).render(context))
    except _TEMPLATE_ERRORS as error:
        raise InvalidInput(
            f"the template {custom.name} cannot be rendered: {type(error).__name__}: {error}", "mend it, or leave `comment-template` out"
        ) from None


def _tidy(text: str) -> str:
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        if not fence and not line.strip() and (not lines or not lines[-1]):
            continue
        lines.append(line if fence else line.rstrip())
        if fence:
            fence = "" if line == fence else fence
        elif opening := _FENCE.match(line):
            fence = opening[0]
    return "\n".join(lines).rstrip("\n") + "\n"
