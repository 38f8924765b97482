"""The one sandboxed Jinja environment: reports and judge prompts (the only owner of jinja2)."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import BaseLoader, ChoiceLoader, DictLoader, FileSystemLoader, StrictUndefined, TemplateError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from agentevals_action import resources
from agentevals_action.errors import InvalidInput


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
    return environment


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


def render_report(name: str, context: Mapping[str, Any], filters: Mapping[str, Callable[..., Any]], custom: Path | None = None) -> str:
    """A packaged report template, or `custom`, which extends it by `{% extends "comment.md.j2" %}`; InvalidInput when it cannot be rendered."""
    loaders: list[BaseLoader] = [FileSystemLoader(resources.folder("templates"))]
    try:
        if custom is not None:
            loaders.insert(0, DictLoader({"custom": custom.read_text(encoding="utf-8")}))
        environment = _environment(ChoiceLoader(loaders))
        environment.filters.update(filters)
        return environment.get_template("custom" if custom else name).render(context)
    except (TemplateError, OSError, TypeError, ValueError) as error:
        if custom is None:
            raise
        raise InvalidInput(f"the template {custom.name} cannot be rendered: {error}", "mend it, or leave `comment-template` out") from None
