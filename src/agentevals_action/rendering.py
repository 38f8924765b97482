"""The one sandboxed Jinja environment: reports and judge prompts (the only owner of jinja2)."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import BaseLoader, ChoiceLoader, DictLoader, FileSystemLoader, StrictUndefined, TemplateError, meta, nodes, pass_eval_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from agentevals_action import resources
from agentevals_action.errors import InvalidInput

_CUSTOM = "the custom template"
#: What a template that somebody else wrote can end in.
_TEMPLATE_ERRORS = (TemplateError, OSError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError, MemoryError)
_FENCE = re.compile("`{3,}|~{3,}")


#: The longest text or list that `*`, and the most bits of a number that `**`, may make in a template.
_LONGEST, _MOST_BITS = 1_000_000, 10_000


class _Environment(ImmutableSandboxedEnvironment):
    """A sandbox in which an operator cannot fill the memory."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """`left * right` or `left ** right`; SecurityError when that would be very large."""
        if operator == "**" and isinstance(left, int) and isinstance(right, int) and left.bit_length() * right > _MOST_BITS:
            raise SecurityError(f"{operator} makes a number of more than {_MOST_BITS:,} bits here")
        for one, times in ((left, right), (right, left)):
            if operator == "*" and isinstance(times, int) and isinstance(one, str | list | tuple) and len(one) * times > _LONGEST:
                raise SecurityError(f"{operator} makes a text or a list longer than {_LONGEST:,} here")
        return super().call_binop(context, operator, left, right)


def _environment(loader: BaseLoader | None) -> ImmutableSandboxedEnvironment:
    # No autoescape: the texts are Markdown and prompts; what is untrusted is escaped where the view is made.
    # Nor is anything computed on compiling: a prompt is compiled when its suite is read, and what it computes may be large.
    return _Environment(
        loader=loader,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        optimized=False,
    )


@cache
def _prompts() -> ImmutableSandboxedEnvironment:
    # A prompt is a text with variables: blank lines and indentation stay as they were written.
    environment = _environment(FileSystemLoader(resources.folder("templates") / "judges"))
    environment.trim_blocks = environment.lstrip_blocks = False
    environment.finalize = _as_text
    return environment


# With the context, which only rendering has: compiling would else print constants already.
@pass_eval_context
def _as_text(_context: nodes.EvalContext, value: Any) -> Any:
    """What `{{ value }}` prints in a prompt: data as JSON, nothing for null."""
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list | tuple | bool) else value


def unknown_variables(text: str, known: frozenset[str]) -> tuple[str, ...]:
    """Names that a prompt uses and nobody gives it, in alphabetical order; ValueError when it is no valid template."""
    try:
        tree = _prompts().parse(text)
        # The one block whose operand is computed on compiling; no prompt has a use for it.
        if tree.find(nodes.ScopedEvalContextModifier):
            raise ValueError("the prompt has `autoescape` in it; take it out, nothing is escaped in a prompt")
        reader = meta.TrackingCodeGenerator(_prompts())
        reader.optimizer = None
        reader.visit(tree)
    except TemplateError as error:
        raise ValueError(f"the prompt is no valid template: {error}") from None
    except RecursionError:
        raise ValueError("the prompt is no valid template: it is nested too deeply") from None
    return tuple(sorted(reader.undeclared_identifiers - known))


def render_prompt(text: str, variables: Mapping[str, Any]) -> str:
    """A judge's prompt with its variables filled in; ValueError when it cannot be rendered."""
    try:
        return _prompts().from_string(text).render(variables)
    except (*_TEMPLATE_ERRORS, SyntaxError) as error:
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
