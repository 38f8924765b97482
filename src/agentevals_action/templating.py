"""The one sandboxed Jinja environment: reports, judge prompts and HTTP bodies (the only owner of
jinja2)."""

import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    DictLoader,
    StrictUndefined,
    TemplateError,
    Undefined,
    meta,
    nodes,
    pass_eval_context,
)
from jinja2 import Template as JinjaTemplate
from jinja2.environment import TemplateExpression
from jinja2.exceptions import SecurityError
from jinja2.filters import do_tojson, do_urlencode
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from agentevals_action import resources
from agentevals_action.errors import InvalidInput

_CUSTOM = "the custom template"
#: What a template that somebody else wrote can end in.
_TEMPLATE_ERRORS = (
    TemplateError,
    OSError,
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    RecursionError,
    MemoryError,
)
_FENCE = re.compile("`{3,}|~{3,}")


#: The longest text or list that `*`, and the most bits of a number that `**`, may make in a
#: template.
_LONGEST, _MOST_BITS = 1_000_000, 10_000


class _Environment(ImmutableSandboxedEnvironment):
    """A sandbox in which an operator cannot fill the memory."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """`left * right` or `left ** right`; SecurityError when that would be very large."""
        if (
            operator == "**"
            and isinstance(left, int)
            and isinstance(right, int)
            and left.bit_length() * right > _MOST_BITS
        ):
            raise SecurityError(f"{operator} makes a number of more than {_MOST_BITS:,} bits here")
        for one, times in ((left, right), (right, left)):
            if (
                operator == "*"
                and isinstance(times, int)
                and isinstance(one, str | list | tuple)
                and len(one) * times > _LONGEST
            ):
                raise SecurityError(
                    f"{operator} makes a text or a list longer than {_LONGEST:,} here"
                )
        return super().call_binop(context, operator, left, right)


def _environment(loader: BaseLoader | None) -> ImmutableSandboxedEnvironment:
    # No autoescape: the texts are Markdown and prompts; what is untrusted is escaped where the view
    # is made. Nor is anything computed on compiling: a prompt is compiled when its suite is read,
    # and what it computes may be large.
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
def packaged_templates() -> Mapping[str, str]:
    """The packaged templates by their paths below `templates` (`judges/rubric.md.j2`), as they are
    when they are first asked for."""
    folder = resources.folder("templates")
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*.j2")
    }


@cache
def _prompts() -> ImmutableSandboxedEnvironment:
    # A prompt is a text with variables: blank lines and indentation stay as they were written.
    environment = _environment(DictLoader(packaged_templates()))
    environment.trim_blocks = environment.lstrip_blocks = False
    environment.finalize = _as_text
    return environment


# With the context, which only rendering has: compiling would else print constants already.
@pass_eval_context
def _as_text(_context: nodes.EvalContext, value: Any) -> Any:
    """What `{{ value }}` prints in a prompt: data as JSON, nothing for null."""
    if value is None:
        return ""
    return (
        json.dumps(value, ensure_ascii=False)
        if isinstance(value, dict | list | tuple | bool)
        else value
    )


def unknown_variables(
    text: str, known: frozenset[str], what: str = "the prompt"
) -> tuple[str, ...]:
    """Names that a template uses and nobody gives it, in alphabetical order; ValueError, which
    calls it `what`, when it is no valid one."""
    try:
        tree = _prompts().parse(text)
        # The one block whose operand is computed on compiling; no prompt has a use for it.
        if tree.find(nodes.ScopedEvalContextModifier):
            raise ValueError(
                f"{what} has `autoescape` in it; take it out, nothing is escaped there"
            )
        reader = meta.TrackingCodeGenerator(_prompts())
        reader.optimizer = None
        reader.visit(tree)
    except TemplateError as error:
        raise ValueError(f"{what} is no valid template: {error}") from None
    except RecursionError:
        raise ValueError(f"{what} is no valid template: it is nested too deeply") from None
    return tuple(sorted(reader.undeclared_identifiers - known))


@lru_cache(maxsize=64)
def _prompt(text: str) -> JinjaTemplate:
    return _prompts().from_string(text)


def render_prompt(text: str, variables: Mapping[str, Any]) -> str:
    """A judge's prompt with its variables filled in; ValueError when it cannot be rendered."""
    try:
        return _prompt(text).render(variables)
    except (*_TEMPLATE_ERRORS, SyntaxError) as error:
        raise ValueError(f"the prompt cannot be rendered: {error}") from None


class _Ready(str):
    """A text that is written as its place wants it already: by `tojson` in a JSON text, by
    `urlencode` in a URL."""

    __slots__ = ()


@pass_eval_context
def _json_ready(context: nodes.EvalContext, value: Any, indent: int | None = None) -> _Ready:
    return _Ready(do_tojson(context, value, indent))


@pass_eval_context
def _in_json(context: nodes.EvalContext, value: Any) -> str:
    """What `{{ value }}` prints in a JSON text: the inside of a string, so that no text can end it;
    data as JSON."""
    text = str(_as_text(context, value))
    return (
        text
        if isinstance(value, _Ready) or not isinstance(value, str)
        else json.dumps(text, ensure_ascii=False)[1:-1]
    )


@pass_eval_context
def _in_url(context: nodes.EvalContext, value: Any) -> str:
    """What `{{ value }}` prints in a URL: one piece of a path, or one value of a query."""
    return (
        str(value)
        if isinstance(value, _Ready)
        else quote(str(_as_text(context, value)), safe="", errors="replace")
    )


@cache
def _bodies(kind: str) -> ImmutableSandboxedEnvironment:
    environment = _environment(None)
    environment.trim_blocks = environment.lstrip_blocks = False
    environment.finalize = {"json": _in_json, "url": _in_url}.get(kind, _as_text)
    if kind == "json":
        environment.filters["tojson"] = _json_ready
    if kind == "url":
        environment.filters["urlencode"] = lambda value: _Ready(do_urlencode(value))
    return environment


@lru_cache(maxsize=256)
def _compiled(text: str, kind: str) -> JinjaTemplate:
    return _bodies(kind).from_string(text)


@lru_cache(maxsize=256)
def _expression(text: str) -> TemplateExpression | None:
    """The one expression that a template consists of (`{{ input }}`), None when there is anything
    beside it."""
    environment = _bodies("text")
    body = environment.parse(text).body if text.startswith("{{") and text.endswith("}}") else []
    printed = body[0].nodes if len(body) == 1 and isinstance(body[0], nodes.Output) else []
    if len(printed) != 1 or isinstance(printed[0], nodes.TemplateData):
        return None
    return environment.compile_expression(text.strip()[2:-2].strip("-+"), undefined_to_none=False)


def render_text(
    text: str,
    variables: Mapping[str, Any],
    what: str,
    kind: Literal["text", "json", "url"] = "text",
) -> str:
    """A template filled in. In a `json` text what is printed is the inside of a string, or data; in
    a `url` it is percent-encoded. ValueError, which calls it `what`, when it cannot be rendered."""
    try:
        return _compiled(text, kind).render(variables)
    except (*_TEMPLATE_ERRORS, SyntaxError) as error:
        raise ValueError(f"{what} cannot be filled in: {error}") from None


def render_value(text: str, variables: Mapping[str, Any], what: str) -> Any:
    """The same for one string of a JSON body; a template of one expression and nothing else is that
    value itself (a list, a number)."""
    try:
        expression = _expression(text)
        if expression is None:
            return _compiled(text, "text").render(variables)
        value = expression(variables)
        if isinstance(value, Undefined):
            value._fail_with_undefined_error()
        return value
    except (*_TEMPLATE_ERRORS, SyntaxError) as error:
        raise ValueError(f"{what} cannot be filled in: {error}") from None


def builtin_prompt(name: str, variables: Mapping[str, Any]) -> str:
    """A packaged prompt of `templates/judges` (`llm_judge.md.j2`), filled in."""
    return _prompts().get_template(f"judges/{name}").render(variables)


@cache
def _reports() -> ImmutableSandboxedEnvironment:
    return _environment(DictLoader(packaged_templates()))


def render_report(name: str, context: Mapping[str, Any], custom: Path | None = None) -> str:
    """A packaged report template, or `custom`, which extends it (`{% extends "comment.md.j2" %}`);
    InvalidInput when that fails.

    Runs of empty lines outside fenced blocks come out as one, so that a template may be laid out to
    be read."""
    if custom is None:
        return _tidy(_reports().get_template(name).render(context))
    try:
        own = DictLoader({_CUSTOM: custom.read_text(encoding="utf-8")})
        return _tidy(
            _environment(ChoiceLoader([own, DictLoader(packaged_templates())]))
            .get_template(_CUSTOM)
            .render(context)
        )
    except _TEMPLATE_ERRORS as error:
        raise InvalidInput(
            f"the template {custom.name} cannot be rendered: {type(error).__name__}: {error}",
            "mend it, or leave `comment-template` out",
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
